"""Probing from processes that are not asynchronous: the thread, and the panel's own vantage."""

import asyncio
import threading

import pytest

from fleet.agent.probes.collected import Collected
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.thread import NotRunningError, ProberThread
from monitoring.probes.panel import panel_rules, probe_now
from tests.probes.conftest import PRIVATE, target
from tests.probes.servers import Server, fine, held
from tests.waiting import eventually


@pytest.fixture
def port():
    """A server in a thread of its own."""
    ready, stop, place = threading.Event(), None, {}

    async def serve():
        nonlocal stop
        stop = asyncio.Event()
        async with Server(fine) as server, Server(held(30)) as slow:
            place["loop"], place["port"], place["slow"] = asyncio.get_running_loop(), server.port, slow.port
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    yield place
    place["loop"].call_soon_threadsafe(stop.set)
    thread.join(10)


@pytest.fixture
def running():
    collected = Collected()
    thread = ProberThread(lambda: Prober("here", rules=PRIVATE), collected)
    thread.start()
    yield thread, collected
    thread.stop()


def test_a_thread_probes_once_and_on_schedule(running, port):
    thread, collected = running
    assert thread.run(target(port=port["port"])).outcome == "ok"
    thread.set_targets([target(port=port["port"], interval_seconds=1)])
    found = eventually(collected.take)
    assert {(result.target, result.outcome) for result in found} == {(1, "ok")}


def test_a_probe_that_is_asked_for_can_be_given_up(running, port):
    thread, _ = running
    future = thread.submit(target(port=port["slow"], timeout_seconds=60))
    future.cancel()
    assert thread.run(target(port=port["port"])).outcome == "ok"


def test_a_thread_that_was_stopped_says_so_and_left_nothing_running(port):
    thread = ProberThread(lambda: Prober("here", rules=PRIVATE), Collected())
    thread.start()
    thread.submit(target(port=port["slow"], timeout_seconds=60))
    thread.stop()
    assert not thread._thread.is_alive()
    with pytest.raises(NotRunningError):
        thread.run(target(port=port["port"]))


def test_a_thread_that_never_started_says_so():
    with pytest.raises(NotRunningError):
        ProberThread(lambda: Prober("here", rules=PRIVATE), Collected()).set_targets([])


def test_the_panel_goes_by_its_own_rules_for_addresses(settings):
    settings.EGRESS_ALLOW = ["10.9.0.0/16"]
    assert panel_rules().allow("10.9.1.1")
    assert not panel_rules().allow("10.8.1.1")


def test_the_panel_probes_from_a_worker_and_refuses_what_is_not_allowed(port, settings):
    settings.EGRESS_ALLOW = []
    found = probe_now(target(port=port["port"]))
    assert (found.vantage, found.outcome, found.reason) == ("panel", "skipped", "address_refused")


def test_results_cross_the_wire_as_they_are():
    import msgspec

    one = ProbeResult(
        target=1,
        kind="chat",
        vantage="here",
        connection="warm",
        scheduled_ms=1,
        started_ms=2,
        outcome="ok",
        ttft_ms=1.5,
    )
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=ProbeResult) == one
    assert msgspec.json.decode(msgspec.json.encode(one), type=ProbeResult) == one
    both = target(connections=("cold", "warm"), headers={"a": "b"}, body={"x": 1})
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(both), type=type(both)) == both
