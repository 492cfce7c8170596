"""The panel as a place that loads: its process sends over real sockets, and what it tells is stored as an agent's is."""

import subprocess
import sys
from pathlib import Path

import pytest

from fleet.agent.probes.target import Target
from monitoring.golive_runs.asked import asked_read
from monitoring.golive_runs.models import GoLiveRun
from monitoring.golive_runs.panel_load import PanelLoads
from monitoring.golive_runs.starting import Place, Subject, golive_start
from tests.fleet.factories import OPERATOR
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

ENGINE = Path(__file__).resolve().parents[1] / "engines" / "fake_engine.py"
ASKED = {"peak_per_second": 40, "p99_ms": None, "seconds": 50, "error_rate": 0.05, "has_steps": False, "max_tokens": 2}


@pytest.fixture
def engine():
    """The port of an engine that answers."""
    command = [sys.executable, str(ENGINE), "--ms-per-token", "2", "--slots", "64"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield int(process.stdout.readline().rsplit(":", 1)[1])
    process.kill()
    process.wait()


def test_the_panels_process_carries_out_its_part_and_every_request_is_kept(engine, settings):
    settings.GOLIVE_TIME_SCALE, settings.EGRESS_ALLOW = 0.02, ["127.0.0.0/8"]
    target = Target(id=1, kind="chat", host="127.0.0.1", port=engine, max_tokens=2)
    subject = Subject("thing", 1, "thing")
    run = golive_start(
        actor=OPERATOR, asked=asked_read(ASKED), subject=subject, places=[Place(0, [target], 1.0)], consent=True
    )
    loads = PanelLoads()
    loads.look()
    try:
        eventually(lambda: GoLiveRun.objects.get(pk=run.pk).ended_at, seconds=60, what="The test's end")
    finally:
        loads.close()
    part = run.parts.get()
    shots = [shot for piece in part.pieces.all() for shot in piece.shots]
    assert len(shots) == len(part.plan["at_seconds"])
    assert (part.state, part.stopped, part.failed) == ("ended", "", 0)
    assert part.loop_lag_ms is not None
    # A machine that is busy makes its sender late, which proves nothing; it never makes the engine fail.
    assert GoLiveRun.objects.get(pk=run.pk).outcome in {"pass", "invalid"}
