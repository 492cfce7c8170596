"""Go-live tests on a whole panel with a real agent and the project's engine, shortened in time.

The engine answers over real sockets, the agent's own process sends the load. A rollout behind a gate serves nobody before.
"""

import contextlib
import os
import signal
import time

import psutil
import pytest

from tests.e2e.running import RunningPanel, wait_until
from tests.e2e.serving import Api, Rig, fake_spec

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SCALE = 0.1  # warm-up 3 s instead of 30 s
# P95 alone, with failures up to 2 %: 149 requests prove both.
ASKED = {
    "peak_per_second": 25, "p95_ms": 250, "p99_ms": None, "measure": "ttft", "error_rate": 0.02, "seconds": 50,
    "lengths": [8, 16, 32], "max_tokens": 4, "has_steps": False, "timeout_seconds": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def panel():
    with RunningPanel("--no-agent", environment={"FLEETDECK_GOLIVE_TIME_SCALE": str(SCALE)}) as running:
        yield running


@pytest.fixture(scope="module")
def api(panel):
    with panel.client() as client:
        yield Api(client)


@pytest.fixture(scope="module")
def rig(panel, api, tmp_path_factory):
    made = Rig(panel, api.client, "rig", tmp_path_factory.mktemp("rig") / "1")
    yield made
    made.leave()


def test_a_healthy_engine_passes_a_slow_one_fails_and_a_starved_sender_proves_nothing(api, rig):
    api.deploy("chat", fake_spec("--ms-per-token", "5", "--slots", "64"))
    good = proven(api, "chat", has_steps=True, most_concurrency=8)
    [part] = good["parts"]
    assert good["outcome"] == "pass", part["judgement"]
    assert part["judgement"]["arrivals_share"] >= 0.95
    assert part["judgement"]["tpot"][0]["value_ms"] >= 4
    assert part["steps"][0]["concurrency"] == 1
    assert good["saturation"]["best"] is not None

    starved = begin(api, "chat")
    until_measured(api, starved)
    sender = sender_of(rig)
    for _pause in range(4):
        halt(sender, seconds=0.4)
    invalid = ended(api, starved)
    assert invalid["outcome"] == "invalid", invalid["parts"]
    assert set(invalid["parts"][0]["judgement"]["flaws"]) & {"loop_lag", "arrivals_too_slow"}

    rollout = api.post(
        "endpoints/chat/revisions/",
        {"spec": fake_spec("--ms-per-token", "150", "--prompt-ms-per-token", "20", "--slots", "2"), "gpus": 0, "gate": ASKED},
    )  # fmt: skip
    wait_until(lambda: rollout_of(api, rollout)["golive_run_id"], seconds=60, what="The gate's test")
    new = api.replicas("chat")[-1]
    assert (new["state"], new["is_gated"]) == ("ready", True)
    slow = decided(api, rollout)
    assert slow["outcome"] == "fail", slow["parts"]
    wait_until(lambda: rollout_of(api, rollout)["ended_at"], seconds=30, what="The rollout's end")
    assert (rollout_of(api, rollout)["state"], rollout_of(api, rollout)["reason"]) == ("returned", "gate_failed")
    assert api.endpoint("chat")["active_revision"] == 1
    api.remove("chat")


def begin(api, name, **changes):
    """Begin a test from the replicas' own machines; returns its id."""
    body = {"asked": {**ASKED, **changes}, "places": ["hosts"], "consent": True}
    return api.post(f"endpoints/{name}/golive/", body)["id"]


def proven(api, name, **changes):
    """Test until the sender itself was on time; on a machine that is busy all the time nothing can be proven."""
    for _try in range(4):
        run = ended(api, begin(api, name, **changes))
        if run["outcome"] != "invalid":
            return run
        flaws = run["parts"][0]["judgement"]["flaws"]
        assert set(flaws) <= {"loop_lag", "arrivals_too_slow"}, run["parts"]
    return pytest.skip(f"this machine is too busy to send load in time: {flaws}, {run['parts'][0]['loop_lag_ms']} ms")


def ended(api, run):
    """Wait for the end of a test and return it."""
    address = f"golive-tests/{run}/"
    wait_until(
        lambda: api.get(address)["ended_at"], seconds=90, what=lambda: f"The test's end: {api.get(address)['parts']}"
    )
    return api.get(address)


def decided(api, rollout):
    """Return the test of a rollout's gate that decided it; one whose sender was late is run again, as a person would."""
    before = None
    for _try in range(4):
        wait_until(
            lambda known=before: rollout_of(api, rollout)["golive_run_id"] not in {None, known},
            seconds=60,
            what="A test",
        )
        run = ended(api, rollout_of(api, rollout)["golive_run_id"])
        if run["outcome"] != "invalid":
            return run
        before = run["id"]
        api.client.post("/api/v1/endpoints/chat/gate-again/").raise_for_status()
    return pytest.skip(f"this machine is too busy to send load in time: {run['parts'][0]['loop_lag_ms']} ms")


def until_measured(api, run):
    wait_until(
        lambda: api.get(f"golive-tests/{run}/")["parts"][0]["phase"] == "measured", seconds=60, what="The measured load"
    )


def rollout_of(api, rollout):
    return api.get(f"endpoints/chat/rollouts/{rollout['id']}/")


def sender_of(rig):
    """Return the process that sends the load: the agent's child for jobs."""
    for child in psutil.Process(rig.agent.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "fleet.agent.jobs" in " ".join(child.cmdline()):
                return child.pid
    raise LookupError("nothing sends")


def halt(pid, *, seconds):
    """Take the processor away from a process for so long, as a machine that is busy does."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        end = time.monotonic() + seconds
        wait_until(lambda: time.monotonic() >= end, seconds=seconds + 5, what="a while")
        os.kill(pid, signal.SIGCONT)
