"""Engines in containers, on a real container engine where there is one: podman behind its Docker-compatible socket."""

import pytest

from fleet.agent.orders import Mount, ReadyCheck
from tests.agent.engines.conftest import changed, engine_order
from tests.agent.engines.podman import IMAGE, Podman, why_not
from tests.waiting import eventually

STREAM = ReadyCheck("stream", "/cgi-bin/answer", body={"max_tokens": 1}, timeout_seconds=5.0)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(why_not()), reason=f"no containers were tested: {why_not()}"),
]


@pytest.fixture(scope="module")
def podman(tmp_path_factory):
    engine = Podman(tmp_path_factory.mktemp("podman"))
    yield engine
    engine.stop()


@pytest.fixture
def box(machine, podman, tmp_path):
    """A machine that may use that engine, and lets containers see one folder."""
    return machine(container_socket=podman.url, mount_folders=[str(tmp_path / "models")])


def container_order(replica=1, **fields):
    order = engine_order(replica, runtime="container", image=IMAGE, metrics_path="", health_path="", ready=STREAM)
    environment = {"PORT": str(order.port), "GREETING": "hello", **fields.pop("environment", {})}
    return changed(order, command=fields.pop("command", []), environment=environment, **fields)


def inspected(podman, status):
    import json

    return json.loads(podman.run("inspect", status.handle.removeprefix("container ")))[0]


def test_a_container_is_ready_once_it_answered_and_carries_our_labels(box, podman):
    order = container_order(secrets={"HF_TOKEN": "canary-token"})
    box.follow(order)
    ready = box.until("ready", health="ok")
    seen = inspected(podman, ready)
    labels = seen["Config"]["Labels"]
    assert labels["fleetdeck.replica"] == "1"
    assert labels["fleetdeck.generation"] == "1"
    assert labels["fleetdeck.endpoint"] == "chat"
    assert seen["HostConfig"]["Privileged"] is False
    assert seen["HostConfig"]["RestartPolicy"]["Name"] in {"", "no"}
    assert "NVIDIA_VISIBLE_DEVICES=void" in seen["Config"]["Env"]
    assert "HF_TOKEN=canary-token" in seen["Config"]["Env"]
    assert ready.image_id
    eventually(lambda: f"engine says hello on {order.port}" in box.log())
    assert box.engines.runtimes.by_name["container"].version().startswith("podman 4")


def test_a_request_for_cards_that_the_engine_drops_silently_is_a_failure_and_nothing_runs(box, podman):
    box.gpus = {"GPU-a": "ok"}
    box.follow(container_order(gpu_uuids=["GPU-a"]))
    failed = box.until("failed", reason="gpu_missing")
    assert "GPU-a" in failed.detail
    assert podman.run("ps", "--all", "--quiet", "--filter", "label=fleetdeck.replica") == ""


def test_how_a_container_ended_is_told_and_it_is_started_again(box, podman):
    box.follow(container_order(command=["sh", "-c", "echo going down; exit 7"]))
    failed = box.until("failed", reason="crash_loop", seconds=40)
    assert (failed.exit_code, failed.restarts) == (7, 3)
    assert "going down" in failed.detail
    eventually(lambda: box.log().splitlines() == ["going down"] * 4)


def test_one_that_is_killed_comes_back_and_one_that_is_paused_is_out(box, podman):
    box.follow(container_order())
    name = box.until("ready").handle.removeprefix("container ")
    podman.run("pause", name)
    assert box.until("not_ready", health="stalled").restarts == 0
    podman.run("unpause", name)
    box.until("ready")
    podman.run("kill", name)
    again = box.until("ready", restarts=1)
    assert again.exit_code == 137


def test_more_memory_than_allowed_is_out_of_memory(box):
    hungry = ["sh", "-c", "head -c 200m /dev/zero | tail"]
    box.follow(container_order(command=hungry, memory_limit_bytes=32 << 20))
    told = eventually(lambda: [status for status in box.told() if status.reason == "out_of_memory"], seconds=30)
    assert "memory" in told[0].detail


def test_a_folder_below_the_allowed_one_is_seen_and_another_is_refused(box, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "weights").write_text("weights of a model\n")
    (tmp_path / "models" / "way-out").symlink_to("/etc")
    mounted = Mount(str(tmp_path / "models"), "/models")
    box.follow(
        container_order(1, mounts=[mounted], command=["sh", "-c", "cat /models/weights; touch /models/x; exec /serve"]),
        container_order(2, mounts=[Mount("/etc", "/models")]),
        container_order(3, mounts=[Mount(str(tmp_path / "models" / "way-out"), "/models")]),
    )
    box.until("ready")
    eventually(lambda: "weights of a model" in box.log())
    assert not (tmp_path / "models" / "x").exists()
    for replica in (2, 3):
        assert "is not below those" in box.until("failed", replica, reason="policy").detail


def test_an_image_is_fetched_ahead_and_nothing_is_started(box, podman):
    box.follow(changed(container_order(), wanted="pull"))
    fetched = box.until("pending", percent=100)
    assert fetched.image_id
    assert podman.run("ps", "--all", "--quiet", "--filter", "label=fleetdeck.replica") == ""


def test_containers_outlive_the_agent_and_others_are_never_touched(box, podman):
    podman.run("run", "--detach", "--name", "not-ours", IMAGE, "/bin/sleep", "300")
    box.follow(container_order())
    first = inspected(podman, box.until("ready"))["Id"]
    box.end()
    box.begin()
    box.engines.resume()
    adopted = box.until("ready", health="ok")
    assert inspected(podman, adopted)["Id"] == first
    assert adopted.restarts == 0
    box.follow()
    eventually(lambda: box.engines.replicas() == [])
    assert podman.run("ps", "--quiet", "--filter", "label=fleetdeck.replica") == ""
    assert podman.run("ps", "--format", "{{.Names}}").split() == ["not-ours"]
    podman.run("rm", "--force", "--time=0", "not-ours")
