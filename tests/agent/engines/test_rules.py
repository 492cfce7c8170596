"""What a machine lets be run, whatever is ordered."""

import docker
import pytest

from fleet.agent.engines.container_spec import creation, mismatch
from fleet.agent.engines.rules import refusal
from fleet.agent.orders import Mount, ReadyCheck, ReplicaOrder
from fleet.agent.policy import Policy


def order(**fields):
    wanted = {
        "id": 1,
        "generation": 1,
        "endpoint": "chat",
        "revision": 1,
        "wanted": "run",
        "runtime": "container",
        "command": ["serve"],
        "port": 8000,
        "ready": ReadyCheck("tcp"),
        "image": "docker.io/vllm/vllm-openai:v0.11",
    }
    return ReplicaOrder(**{**wanted, **fields})


def test_by_default_processes_and_containers_without_folders_are_allowed():
    assert refusal(order(), Policy()) == ""
    assert refusal(order(runtime="process"), Policy()) == ""


def test_each_runtime_can_be_forbidden():
    assert "allow_containers" in refusal(order(), Policy(allow_containers=False))
    assert "allow_processes" in refusal(order(runtime="process"), Policy(allow_processes=False))


@pytest.mark.parametrize(
    ("prefix", "is_allowed"),
    [
        ("docker.io/vllm/", True),
        ("docker.io/vllm/vllm-openai", True),
        ("docker.io/vllm/vllm-openai:v0.11", True),
        ("docker.io/vllm/vllm", False),
        ("docker.io/vl", False),
        ("registry.example/", False),
    ],
)
def test_images_are_allowed_by_whole_parts_of_their_names(prefix, is_allowed):
    assert (refusal(order(), Policy(image_prefixes=[prefix])) == "") is is_allowed


@pytest.mark.parametrize(
    ("source", "is_allowed"),
    [
        ("models", True),
        ("models/llama", True),
        ("models/../secrets", False),
        ("models-of-others", False),
        ("models/way-out", False),
        ("", False),
    ],
)
def test_folders_are_judged_by_where_they_really_are(tmp_path, source, is_allowed):
    for name in ("models/llama", "secrets", "models-of-others"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "models/way-out").symlink_to(tmp_path / "secrets")
    policy = Policy(mount_folders=[str(tmp_path / "models")])
    mounts = [Mount(f"{tmp_path}/{source}", "/models")]
    assert (refusal(order(mounts=mounts), policy) == "") is is_allowed


def test_a_relative_folder_and_the_socket_of_the_container_engine_are_refused():
    assert "not absolute" in refusal(order(mounts=[Mount("models", "/models")]), Policy())
    assert "not below" in refusal(order(mounts=[Mount("/var/run/docker.sock", "/var/run/docker.sock")]), Policy())


@pytest.mark.parametrize("host", ["169.254.169.254", "10.255.1.2", "panel.example", "8.8.8.8"])
def test_an_order_cannot_make_this_machine_ask_others(host):
    assert "no address of this machine" in refusal(order(host=host), Policy())


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "localhost", ""])
def test_what_an_engine_can_listen_on_is_fine(host):
    assert refusal(order(host=host), Policy()) == ""


@pytest.fixture
def client():
    """A client of the API that was never connected: enough to build what would be asked."""
    return docker.APIClient(base_url="unix:///nonexistent/docker.sock", version="1.41")


def test_a_container_is_asked_for_with_its_cards_folders_and_one_published_port(client):
    asked = order(
        port=8001,
        port_of_container=8000,
        metrics_port=8002,
        gpu_uuids=["GPU-a", "GPU-b"],
        shm_bytes=1 << 30,
        memory_limit_bytes=1 << 34,
        mounts=[Mount("/srv/models", "/models"), Mount("/srv/models/cache", "/root/.cache", is_read_only=False)],
        environment={"A": "1", "NVIDIA_VISIBLE_DEVICES": "all"},
        secrets={"HF_TOKEN": "t"},
    )
    made = creation(client, asked, "fleetdeck-x-1", {"fleetdeck.replica": "1"})
    host = made["host_config"]
    assert host["PortBindings"] == {
        "8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8001"}],
        "8002/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8002"}],
    }
    assert host.get("NetworkMode") != "host"
    (request,) = host["DeviceRequests"]
    assert (request["Driver"], request["DeviceIDs"], request["Capabilities"]) == (
        "nvidia",
        ["GPU-a", "GPU-b"],
        [["gpu"]],
    )
    assert [(mount["Source"], mount["Target"], mount["ReadOnly"]) for mount in host["Mounts"]] == [
        ("/srv/models", "/models", True),
        ("/srv/models/cache", "/root/.cache", False),
    ]
    assert (host["ShmSize"], host["Memory"], host["RestartPolicy"]) == (1 << 30, 1 << 34, {"Name": "no"})
    assert not host.get("Privileged")
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert made["environment"]["HF_TOKEN"] == "t"
    assert made["command"] == ["serve"]


def test_without_a_port_of_its_own_it_shares_the_machines_network_and_without_cards_it_sees_none(client):
    made = creation(client, order(command=[], environment={"NVIDIA_VISIBLE_DEVICES": "all"}), "n", {})
    assert made["host_config"]["NetworkMode"] == "host"
    assert "PortBindings" not in made["host_config"]
    assert "DeviceRequests" not in made["host_config"]
    assert made["environment"]["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert made["command"] is None  # the image's own


AS_ASKED = {
    "HostConfig": {"Privileged": False, "ShmSize": 64, "Memory": 1024, "DeviceRequests": [{"DeviceIDs": ["GPU-a"]}]},
    "Mounts": [{"Destination": "/models"}],
}


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ({}, None),
        ({"DeviceRequests": None}, "gpu_missing"),
        ({"DeviceRequests": [{"DeviceIDs": ["GPU-b"]}]}, "gpu_missing"),
        ({"Privileged": True}, "policy"),
        ({"ShmSize": 1}, "spawn_failed"),
        ({"Memory": 0}, "spawn_failed"),
    ],
)
def test_a_container_that_is_not_as_was_asked_is_refused(host, reason):
    asked = order(gpu_uuids=["GPU-a"], shm_bytes=64, memory_limit_bytes=1024, mounts=[Mount("/srv/models", "/models")])
    problem = mismatch(asked, {**AS_ASKED, "HostConfig": {**AS_ASKED["HostConfig"], **host}})
    assert (problem and problem.reason) == reason
    assert mismatch(asked, {**AS_ASKED, "Mounts": []}).reason == "spawn_failed"
