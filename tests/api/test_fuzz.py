"""schemathesis over the whole API on a loopback server: whatever is sent, the panel never answers 5xx.

Its command line runs as a step of its own; bounded examples, so that it stays a matter of minutes.
"""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.servers.basehttp import WSGIRequestHandler

from panel.accounts.models import AuditEntry
from tests.accounts.people import person, token_of
from tests.security.rows import ROW, one_of_everything

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
EXAMPLES = 3


@pytest.fixture(scope="module")
def description(tmp_path_factory):
    """The API's description as a file: made once, and however long that takes."""
    path = tmp_path_factory.mktemp("schema") / "openapi.json"
    call_command("spectacular", file=str(path), format="openapi-json")
    return path


@pytest.fixture(scope="module", autouse=True)
def answers_are_sent_at_once():
    """Django's test server writes heads and bodies apart; Nagle's algorithm would hold each body for 40 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WSGIRequestHandler, "disable_nagle_algorithm", True)
        yield


@pytest.fixture
def panel_with_one_of_everything(live_server, description):
    admin = person("ada", "admin")
    one_of_everything(admin)
    logging.disable(logging.WARNING)  # thousands of requests are refused, each with a line of log
    yield live_server, token_of(admin), description
    logging.disable(logging.NOTSET)


def fuzz(panel, tmp_path, *, phases, parameters=""):
    live_server, token, description = panel
    config = tmp_path / "schemathesis.toml"
    # What another method does at an address is one question for all of them: Django answers 405 before any of our code.
    config.write_text(f"[parameters]\n{parameters}\n[phases.coverage]\nunexpected-methods = []\n")
    command = [
        str(SCHEMATHESIS), "--config-file", str(config), "run", str(description),
        "--url", live_server.url,
        "--header", f"Authorization: Bearer {token}",
        "--checks", "not_a_server_error",
        "--max-examples", str(EXAMPLES),
        "--phases", phases,
        "--seed", "1",
        "--generation-database", "none",
        "--request-timeout", "60",
        "--continue-on-failure",
        "--warnings", "off",
        "--suppress-health-check", "all",
        "--no-color",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)}
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=800
    )


def test_nothing_that_is_sent_breaks_the_api(panel_with_one_of_everything, tmp_path):
    result = fuzz(panel_with_one_of_everything, tmp_path, phases="fuzzing")
    assert result.returncode == 0, result.stdout[-6_000:] + result.stderr[-2_000:]
    assert "No issues found" in result.stdout


def test_nothing_that_is_sent_about_what_is_there_breaks_the_api(panel_with_one_of_everything, tmp_path):
    result = fuzz(panel_with_one_of_everything, tmp_path, phases="coverage,fuzzing", parameters=f'"path.id" = {ROW}')
    assert result.returncode == 0, result.stdout[-6_000:] + result.stderr[-2_000:]
    assert "No issues found" in result.stdout
    touched = set(AuditEntry.objects.filter(target_id=ROW).values_list("target_kind", flat=True))
    assert {"user", "server", "jointoken"} <= touched
