"""Names: their own threads, their own deadline, and slow ones that hold up nobody."""

import asyncio
import socket
import threading
import time

import pytest

from fleet.agent.probes.prober import Prober
from fleet.agent.probes.resolver import Resolver
from fleet.agent.probes.result import ProbeError
from tests.probes.conftest import PRIVATE, names, target
from tests.probes.servers import Server, fine
from tests.waiting import eventually_here


class Slow:
    """A lookup that answers for one name at once, and for others when it is let go."""

    def __init__(self):
        self.go = threading.Event()
        self.asked = []

    def __call__(self, host, _port, **_options):
        self.asked.append(host)
        if host != "fast.example":
            self.go.wait(30)
        return [(0, 0, 0, "", ("127.0.0.1", 0))]


@pytest.fixture
def slow():
    lookup = Slow()
    yield lookup
    lookup.go.set()


async def test_twenty_slow_names_hold_up_no_fast_one(slow):
    async with Server(fine) as server, Prober("here", rules=PRIVATE, resolver=Resolver(lookup=slow)) as prober:
        waiting = [
            asyncio.create_task(prober.run(target(port=9, host=f"slow{number}.example", timeout_seconds=0.5)))
            for number in range(20)
        ]
        await eventually_here(lambda: len(slow.asked) == 20)
        fast = await prober.run(target(port=server.port, host="fast.example"))
        others = await asyncio.gather(*waiting)
    assert fast.outcome == "ok"
    assert fast.dns_ms < 200
    assert {(found.outcome, found.phase_reached, found.dns_ms) for found in others} == {("timeout", "dns", None)}


async def test_a_name_that_hangs_takes_two_threads_at_most(slow):
    resolver = Resolver(lookup=slow)
    async with Prober("here", rules=PRIVATE, resolver=resolver) as prober:
        one = target(port=9, host="slow.example", timeout_seconds=0.1)
        found = [await prober.run(one) for _ in range(4)]
        assert [result.outcome for result in found] == ["timeout", "timeout", "dns", "dns"]
        assert found[3].reason == "resolver_busy"
        assert len(slow.asked) == 2
        slow.go.set()
        await eventually_here(lambda: not resolver._asked)


async def test_waiting_for_a_thread_makes_the_result_suspect(slow):
    async with (
        Server(fine) as server,
        Prober("here", rules=PRIVATE, resolver=Resolver(threads=1, lookup=slow)) as prober,
    ):
        first = asyncio.create_task(prober.run(target(port=server.port, host="slow.example")))
        await eventually_here(lambda: slow.asked)
        second = asyncio.create_task(prober.run(target(port=server.port, host="fast.example")))
        await asyncio.sleep(0.05)
        slow.go.set()
        assert [(await task).outcome for task in (first, second)] == ["ok", "ok"]
        assert second.result().is_suspect


async def test_a_question_nobody_waits_for_any_more_is_not_asked(slow):
    resolver = Resolver(threads=1, lookup=slow)
    first = asyncio.create_task(resolver.find("slow.example"))
    await eventually_here(lambda: slow.asked)
    second = asyncio.create_task(resolver.find("gone.example"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    slow.go.set()
    await first
    await eventually_here(lambda: not resolver._asked)
    assert slow.asked == ["slow.example"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "not_found"),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), "resolver_failed"),
        (UnicodeError("label too long"), "not_a_name"),
    ],
)
async def test_what_the_system_says_of_a_name_is_the_reason(error, reason):
    def lookup(*_args, **_options):
        raise error

    async with Prober("here", rules=PRIVATE, resolver=Resolver(lookup=lookup)) as prober:
        found = await prober.run(target(port=80, host="model.example"))
    assert (found.outcome, found.reason, found.phase_reached, found.dns_ms) == ("dns", reason, "dns", None)


async def test_an_address_needs_no_resolver():
    def lookup(*_args, **_options):
        raise AssertionError

    async with Server(fine) as server, Prober("here", rules=PRIVATE, resolver=Resolver(lookup=lookup)) as prober:
        found = await prober.run(target(port=server.port))
    assert (found.outcome, found.dns_ms) == ("ok", None)


async def test_the_time_of_a_slow_name_is_in_dns_and_nowhere_else():
    def lookup(_host, _port, **_options):
        time.sleep(0.05)
        return [(0, 0, 0, "", ("127.0.0.1", 0))]

    async with Server(fine) as server, Prober("here", rules=PRIVATE, resolver=Resolver(lookup=lookup)) as prober:
        found = await prober.run(target(port=server.port, host="model.example"))
    assert found.dns_ms >= 50 > found.tcp_ms
    assert found.ttfb_ms >= found.dns_ms


async def test_a_family_alone_is_asked_for():
    asked = []

    def lookup(_host, _port, **options):
        asked.append(options["family"])
        return names(x=["127.0.0.1"])("x", None)

    resolver = Resolver(lookup=lookup)
    for family in (4, 6, None):
        await resolver.find("model.example", family)
    assert asked == [socket.AF_INET, socket.AF_INET6, socket.AF_UNSPEC]


async def test_threads_that_have_nothing_to_do_go_away(monkeypatch):
    monkeypatch.setattr("fleet.agent.probes.resolver.IDLE_SECONDS", 0.05)
    resolver = Resolver(lookup=names(model_example=["127.0.0.1"]))
    await resolver.find("model.example")
    await eventually_here(lambda: resolver._threads == 0)
    assert (await resolver.find("model.example")).addresses == ["127.0.0.1"]


async def test_a_closed_loop_is_no_trouble_for_a_late_answer(slow):
    import concurrent.futures

    resolver = Resolver(lookup=slow)

    def elsewhere():
        async def ask():
            task = asyncio.create_task(resolver.find("slow.example"))
            await asyncio.sleep(0.01)
            task.cancel()

        asyncio.run(ask())

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        await asyncio.wrap_future(pool.submit(elsewhere))
    slow.go.set()
    await eventually_here(lambda: not resolver._asked)
    with pytest.raises(ProbeError):
        await Resolver(lookup=names()).find("nobody.example")
