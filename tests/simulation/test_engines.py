"""Engines of simulated machines: real processes on loopback, started by the real agent's loop, which load the simulated cards."""

import json

import httpx
import pytest

from fleet.agent.engines import runtimes
from fleet.agent.engines.metrics import read_counters
from fleet.agent.engines.reconcile import Engines
from fleet.agent.orders import ReadyCheck, ReplicaOrder
from fleet.agent.policy import Policy
from fleet.simulation.cards import RTX_4090
from fleet.simulation.engines import facts as facts_module
from fleet.simulation.engines.facts import facts_of
from fleet.simulation.engines.pages import NAMES, Work, metrics_page
from fleet.simulation.engines.records import Guests
from fleet.simulation.engines.runtimes import SimulatedContainers, SimulatedProcesses
from fleet.simulation.plan import CardPlan, ServerPlan
from fleet.simulation.server import SimulatedServer
from tests.agent.engines.conftest import QUICK, changed, is_alive
from tests.waiting import eventually, free_port

CHAT = {"model": "org/model", "stream": True, "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
NOW = 1_764_504_000.0


def order(number=1, **fields):
    """What an agent is told of a vLLM."""
    command = [
        "vllm",
        "serve",
        "org/model",
        "--host",
        "0.0.0.0",
        "--max-num-seqs",
        "8",
        "--gpu-memory-utilization",
        "0.5",
    ]
    wanted = {
        "id": number, "generation": 1, "endpoint": "chat", "revision": 1, "wanted": "run", "runtime": "container",
        "command": command, "port": free_port(), "host": "0.0.0.0", "engine": "vllm", "image": "vllm/vllm-openai:v0.18.0",
        "ready": ReadyCheck("stream", "/v1/chat/completions", "POST", CHAT, timeout_seconds=5.0),
        "health_path": "/health", "metrics_path": "/metrics", "upstream_key": "canary-key",
    }  # fmt: skip
    return ReplicaOrder(**{**wanted, **fields})


def test_what_an_engine_is_follows_from_the_command_of_the_real_one():
    facts = facts_of(order(gpu_uuids=["GPU-a"], environment={"SIMULATED_FAULT": "stall"}), "/srv/engines")
    assert (facts.engine, facts.model, facts.slots, facts.memory_share) == ("vllm", "org/model", 8, 0.5)
    assert (facts.host, facts.gpus, facts.fault) == ("127.0.0.1", ["GPU-a"], "stall")
    llama = facts_of(order(command=["llama-server", "--parallel=3"], ready=ReadyCheck("tcp")), "")
    assert (llama.model, llama.slots, llama.memory_share) == ("chat", 3, facts_module.DEFAULT_SHARE)


@pytest.mark.parametrize("engine", NAMES)
def test_the_agent_reads_every_page_as_that_engines_own(engine):
    counters = read_counters(
        metrics_page(engine, "org/model", Work(running=2, waiting=3, tokens=40, requests=9), slots=4)
    )
    assert counters.family == engine
    assert counters.waiting == 3
    assert counters.progress == (9 if engine in {"triton", "trtllm"} else 40)


@pytest.fixture
def server(tmp_path):
    """A simulated server with two cards."""
    cards = tuple(CardPlan(profile=RTX_4090) for _ in range(2))
    plan = ServerPlan(
        name="rig",
        provider="P",
        region="R",
        utc_offset_hours=0,
        driver_version="570.1",
        cuda_version=12080,
        cards=cards,
    )
    return SimulatedServer(plan, tmp_path, seed=1, now=NOW)


@pytest.fixture
def engines(tmp_path, server, monkeypatch):
    """The agent's loop on that server."""
    monkeypatch.setenv("FLEETDECK_SIMULATION_FILE", str(tmp_path / "rig.nvml"))
    monkeypatch.setitem(runtimes.MAKERS, "process", SimulatedProcesses)
    monkeypatch.setitem(runtimes.MAKERS, "container", SimulatedContainers)
    monkeypatch.setattr(facts_module, "LOAD_SECONDS", 0.5)
    monkeypatch.setattr("fleet.simulation.engines.runtimes.PULL_SECONDS", 0.2)
    known = {runner.card.uuid: "ok" for runner in server.runners}
    made = Engines(tmp_path / "state", Policy(), None, lambda: known, QUICK)
    made.start()
    yield made
    made.close(10)
    Engines(tmp_path / "state", Policy(), None, pace=QUICK).stop_all(20)


def until(engines, state, number=1):
    return eventually(
        lambda: next((each for each in engines.statuses() if each.id == number), None),
        lambda status: status is not None and status.state == state,
        seconds=30,
        what=state,
    )


@pytest.mark.e2e
@pytest.mark.timeout(90)
def test_a_container_is_pulled_serves_with_its_key_loads_its_card_and_frees_it(engines, server):
    card, other = (runner.card for runner in server.runners)
    one = order(gpu_uuids=[card.uuid])
    engines.follow(1, [one])
    ready = until(engines, "ready")
    assert ready.handle == "container fleetdeck-1 (simulated)"
    assert ready.image_id.startswith("sha256:")
    url = f"http://127.0.0.1:{one.port}/v1/chat/completions"
    assert httpx.post(url, json=CHAT).status_code == 401
    asked = {**CHAT, "max_tokens": 12, "stream_options": {"include_usage": True}}
    text = httpx.post(url, json=asked, headers={"authorization": "Bearer canary-key"}, timeout=10).text
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    words = "".join(each["choices"][0]["delta"].get("content", "") for each in events if each["choices"])
    assert words.split() == [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "one",
        "two",
    ]
    assert (events[-1]["usage"]["completion_tokens"], text.endswith("[DONE]\n\n")) == (12, True)
    server.step(NOW, 1.0)
    held = card.get("memory_used_bytes") / card.get("memory_total_bytes")
    assert 0.4 < held < 0.6
    assert other.get("memory_used_bytes") < 0.1 * other.get("memory_total_bytes")
    [process] = Guests(server.guests.folder).present()
    engines.follow(2, [changed(one, wanted="drain")])
    until(engines, "stopped")
    assert not is_alive(process.pid)
    server.step(NOW, 1.0)
    assert card.get("memory_used_bytes") < 0.1 * card.get("memory_total_bytes")


@pytest.mark.e2e
@pytest.mark.timeout(90)
def test_one_that_is_told_to_fail_says_why_as_the_real_one_would(engines):
    engines.follow(1, [order(runtime="process", image="", environment={"SIMULATED_FAULT": "out_of_memory"})])
    assert "CUDA out of memory" in until(engines, "failed").detail


@pytest.mark.e2e
@pytest.mark.timeout(90)
def test_engines_end_with_their_machine(engines, server):
    engines.follow(1, [order()])
    until(engines, "ready")
    [guest] = server.guests.present()
    server.guests.write(changed(guest, pid=2**22, ticks=1), "fleet.json")
    eventually(lambda: is_alive(guest.pid), lambda alive: not alive, seconds=20)


def test_a_card_does_what_its_engines_do_beside_its_own_work_and_forgets_those_that_died(server):
    card = server.runners[0].card
    from fleet.simulation.engines.records import me

    server.guests.write(me(name="vllm", gpus=[card.uuid], memory=0.7, utilization=0.9))
    for second in range(5):
        server.step(NOW + second, 1.0)
    assert card.get("utilization_percent") > 80
    assert card.get("memory_used_bytes") > 0.6 * card.get("memory_total_bytes")
    server.guests.write(changed(me(gpus=[card.uuid], memory=0.7), ticks=1))
    server.step(NOW + 6, 1.0)
    assert card.get("memory_used_bytes") < 0.1 * card.get("memory_total_bytes")
