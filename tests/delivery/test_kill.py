"""A dispatcher that dies at any step loses nothing, and what comes twice carries the same Message-ID."""

import json
import os
import signal
import subprocess
import sys

import psycopg
import pytest

from tests import databases
from tests.delivery import smtp_server as server
from tests.delivery.killed import STEPS

DATABASE = "fleetdeck_killed_dispatcher"
pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def outcome():
    """What the processes said and what arrived, all steps gone through."""
    mailbox = server.Mailbox()
    url = databases.create(DATABASE)
    try:
        with server.smtp_server(mailbox) as port, psycopg.connect(url, autocommit=True) as connection:
            settings = {
                "host": "127.0.0.1", "port": port, "transport": "none", "sender": server.USER,
                "recipients": [{"address": "ada@example.com"}],
            }  # fmt: skip
            connection.execute(
                "INSERT INTO monitoring_channel (name, kind, settings, secrets, language, time_zone, min_severity, topics,"
                " is_enabled, disabled_reason, created_at, created_by_name, failure)"
                " VALUES ('mail', 'mail', %s, '', '', '', 'info', '[]', true, '', now(), 'ada', '')",
                [json.dumps(settings)],
            )
            done = subprocess.run(
                [sys.executable, "-m", "tests.delivery.killed"], cwd=databases.ROOT, capture_output=True, text=True,
                env={**os.environ, "DATABASE_URL": url}, timeout=110, check=False,
            )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1]), mailbox.mails, done.stderr
    finally:
        databases.drop(DATABASE)


@pytest.mark.parametrize("number", range(len(STEPS)), ids=STEPS)
def test_every_transition_arrives_whatever_step_the_dispatcher_died_at(outcome, number):
    statuses, mails, errors = outcome
    assert statuses[STEPS[number]] == [signal.SIGKILL, 0], errors
    mine = [mail for mail in mails if f"step-{number} " in mail["Subject"]]
    ids = [mail["Message-ID"] for mail in mine]
    root = ids[0]
    assert len(set(ids)) == 2
    assert mine[-1]["References"] == root
    assert ids.count(mine[-1]["Message-ID"]) == 1
    may_be_double = STEPS[number] in {"sent", "settled, not committed"}
    assert ids.count(root) == (2 if may_be_double else 1)
