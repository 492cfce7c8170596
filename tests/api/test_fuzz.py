"""schemathesis over the whole API on a loopback server: whatever is sent, the panel never answers 5xx.

Its command line runs as a step of its own; bounded examples, so that it stays a matter of minutes.
"""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from fleet.models import Agent, Gpu, GpuFault, JoinToken, Server
from panel.accounts.audit import Actor, audit
from panel.accounts.models import ApiToken, AuditEntry, LoginSession
from panel.core.clock import now
from panel.core.models import Event
from tests.accounts.people import person, token_of

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
EXAMPLES = 8
ROW = 100_000  # the id of the rows that are there; far from what sequences give out


@pytest.fixture
def panel_with_one_of_everything(live_server):
    """Make rows of one known id, so that a run with that id meets something, and an admin to run as."""
    at = now()
    other = person("other", pk=ROW)
    ApiToken.objects.create(
        pk=ROW,
        user=other,
        name="x",
        prefix="aaaaaaaa",
        token_hash="0" * 64,
        created_at=at,
        expires_at=at + timedelta(days=1),
    )
    server = Server.objects.create(pk=ROW, name="node-1", state="ready", state_changed_at=at, created_at=at)
    Agent.objects.create(pk=ROW, server=server, token_prefix="bbbbbbbb", token_hash="0" * 64, joined_at=at)
    gpu = Gpu.objects.create(
        pk=ROW, server=server, uuid="GPU-1", index=0, name="H100", state="ok", state_changed_at=at, first_seen_at=at
    )
    GpuFault.objects.create(pk=ROW, server=server, gpu=gpu, code=79, source="nvml", first_at=at, last_at=at)
    JoinToken.objects.create(
        pk=ROW, name="node-2", prefix="cccccccc", token_hash="0" * 64, created_at=at, expires_at=at + timedelta(days=1)
    )
    admin = person("ada", "admin")
    LoginSession.objects.create(pk=ROW, user=admin, session_key="x", created_at=at, last_seen_at=at)
    Event.objects.create(pk=ROW, at=at, kind="gpu.xid", subject_kind="gpu", subject_id=ROW, server_id=ROW)
    audit(actor=Actor.system("test"), action="test.start")
    return live_server, token_of(admin)


def fuzz(live_server, token, tmp_path, *, phases, parameters=""):
    config = tmp_path / "schemathesis.toml"
    config.write_text(f"[parameters]\n{parameters}\n")
    command = [
        str(SCHEMATHESIS), "--config-file", str(config), "run", f"{live_server.url}/api/schema/?format=json",
        "--header", f"Authorization: Bearer {token}",
        "--checks", "not_a_server_error",
        "--max-examples", str(EXAMPLES),
        "--phases", phases,
        "--seed", "1",
        "--generation-database", "none",
        "--request-timeout", "30",
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
    live_server, token = panel_with_one_of_everything
    result = fuzz(live_server, token, tmp_path, phases="fuzzing")
    assert result.returncode == 0, result.stdout[-6_000:] + result.stderr[-2_000:]
    assert "No issues found" in result.stdout


def test_nothing_that_is_sent_about_what_is_there_breaks_the_api(panel_with_one_of_everything, tmp_path):
    live_server, token = panel_with_one_of_everything
    result = fuzz(live_server, token, tmp_path, phases="coverage,fuzzing", parameters=f'"path.id" = {ROW}')
    assert result.returncode == 0, result.stdout[-6_000:] + result.stderr[-2_000:]
    assert "No issues found" in result.stdout
    touched = set(AuditEntry.objects.filter(target_id=ROW).values_list("target_kind", flat=True))
    assert {"user", "server", "jointoken"} <= touched
