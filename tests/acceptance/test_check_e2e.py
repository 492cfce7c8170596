"""Real agents with simulated cards on a real panel: what a check finds, and what becomes of it when things go wrong."""

import subprocess
import sys

import httpx
import psutil
import pytest

from fleet.simulation.cards import A100, H100
from tests.waiting import eventually
from tests.webpanel import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def ask(story, **body):
    return story.panel.post(f"servers/{story.id}/acceptance/", body)["id"]


def job(story, job_id):
    return story.panel.get(f"jobs/{job_id}/")


def until(story, job_id, *states, seconds=180):
    return story.until(lambda: job(story, job_id), lambda row: row["state"] in states, seconds=seconds)


def under_way(story, job_id):
    """Wait until the job's own process runs; return that."""
    until(story, job_id, "running")
    agent = psutil.Process(story.process.process.pid)
    return eventually(lambda: next(iter(agent.children()), None))


def lines(story, job_id):
    detail = story.panel.get(f"servers/{story.id}/acceptance/{job_id}/")
    return detail, {(line["code"], line["gpu"]): line for line in detail["lines"]}


def test_a_machine_that_is_not_what_was_ordered(rig, host, cuda):
    good, wrong = host.add_card(H100), host.add_card(A100)
    good.set(pcie_width=8)
    wrong.set(power_limit_enforced_milliwatts=250_000)
    story = rig(LD_LIBRARY_PATH=str(cuda), CUDA_UUID=good.uuid.removeprefix("GPU-"))
    job_id = ask(story, expected={"gpu_model": "H100 SXM 80GB", "gpu_count": 3, "cpu_count": 1})
    ended = until(story, job_id, "succeeded", "failed", "expired")
    assert ended["state"] == "succeeded", ended
    detail, by_code = lines(story, job_id)
    assert detail["verdict"] == "fail"
    failed = {key for key, line in by_code.items() if line["verdict"] == "fail"}
    assert {("gpu_count", None), ("pcie_width", 0), ("model", 1), ("power_enforced", 1)} <= failed
    assert ("model", 0) not in failed
    assert (by_code["pcie_width", 0]["ordered"], by_code["pcie_width", 0]["found"]) == (16, 8)
    assert (by_code["gpu_count", None]["ordered"], by_code["gpu_count", None]["found"]) == (3, 2)
    # The copy ran on the one card that this CUDA has, and its link was read meanwhile.
    [copied, left] = detail["found"]["cards"]
    assert copied["copy"]["rounds"] >= 5
    assert copied["is_link_loaded"]
    assert left["missing"]["copy"] == "no_cuda_device"
    assert by_code["steadiness", 1]["verdict"] == "not_proven"
    # The machine and the ways from it.
    assert by_code["cpu_count", None]["verdict"] == "pass"
    assert by_code["panel_downlink", None]["found"] > 1e6
    assert by_code["panel_uplink", None]["found"] > 1e6
    assert by_code["panel_hops", None]["found"] == 1
    assert by_code["clock_skew", None]["verdict"] == "pass"
    assert by_code["disk_read", None]["found"] > 1e6
    assert detail["found"]["seconds"] < 90


def test_a_busy_card_is_left_alone(rig, host, cuda):
    busy = host.add_card(H100)
    busy.set(memory_used_bytes=60 << 30, utilization_percent=97)
    story = rig(LD_LIBRARY_PATH=str(cuda), CUDA_UUID=busy.uuid.removeprefix("GPU-"))
    job_id = ask(story)
    until(story, job_id, "succeeded")
    detail, by_code = lines(story, job_id)
    assert (by_code["steadiness", 0]["verdict"], by_code["steadiness", 0]["reason"]) == ("not_proven", "busy")
    assert detail["found"]["cards"][0]["is_busy"]
    assert not detail["found"]["cards"][0].get("is_link_loaded")


def test_without_cuda_nothing_is_claimed_of_a_copy(rig, host, tmp_path):
    host.add_card(H100)
    story = rig(LD_LIBRARY_PATH=str(tmp_path))
    job_id = ask(story)
    until(story, job_id, "succeeded")
    detail, by_code = lines(story, job_id)
    if detail["found"]["cards"][0]["missing"]["copy"] != "no_cuda":
        pytest.skip("this machine has a CUDA library of its own")
    assert (by_code["copy_rate", 0]["verdict"], by_code["copy_rate", 0]["found"]) == ("not_proven", None)
    assert detail["verdict"] != "pass"


def test_samples_go_on_during_a_check_and_a_cancelled_one_stops(rig, host):
    host.add_card(H100)
    story = rig()
    job_id = ask(story)
    process = under_way(story, job_id)
    before = story.until(lambda: story.server()["agent"]["last_seen_at"])
    story.panel.post(f"jobs/{job_id}/cancel/", {})
    eventually(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, seconds=15)
    story.until(lambda: story.server()["agent"]["last_seen_at"] > before)
    assert job(story, job_id)["state"] == "cancelled"
    # The lane is free again.
    until(story, ask(story), "succeeded")


def test_an_agent_killed_in_the_middle_says_so_when_it_is_back(rig, host):
    host.add_card(H100)
    story = rig()
    job_id = ask(story)
    process = under_way(story, job_id)
    story.process.process.kill()
    story.process.process.wait()
    eventually(
        lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    )  # it does not outlive its agent
    story.start()
    ended = until(story, job_id, "failed")
    assert ended["reason"] == "interrupted"


def test_a_result_reaches_a_panel_that_was_away(rig, host, panel):
    host.add_card(H100)
    story = rig()
    job_id = ask(story)
    under_way(story, job_id)
    panel.process.kill()
    panel.process.wait()
    agent = psutil.Process(story.process.process.pid)
    eventually(lambda: not agent.children(), seconds=150)  # it goes on measuring, and ends
    restart(panel)
    ended = until(story, job_id, "succeeded", "failed", "expired")
    assert ended["state"] == "succeeded", ended
    detail, _by_code = lines(story, job_id)
    assert detail["found"]["cards"][0]["name"] == H100.name


def restart(panel):
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "panel.asgi:application",
        "--port",
        str(panel.port),
        "--log-level",
        "warning",
    ]
    with panel.log.open("ab") as output:
        panel.process = subprocess.Popen(command, cwd=ROOT, env=panel.environment, stdout=output, stderr=output)
    eventually(lambda: panel.get("health/"), passing=(httpx.TransportError, AssertionError), what=panel.tail)


def test_what_a_machines_policy_forbids_is_not_done(rig, host, tmp_path):
    host.add_card(H100)
    story = rig()
    story.stop()
    policy = tmp_path / "agent/policy.toml"
    policy.write_text('forbidden_jobs = ["acceptance"]\n')
    story.start()
    job_id = ask(story)
    assert until(story, job_id, "failed")["reason"] == "forbidden"
