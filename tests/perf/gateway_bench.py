"""The gateway: how fast a change takes effect, what a dying replica costs callers, what Envoy and the key check add.

A real Envoy under the agent's own lane, replicas as processes of their own, callers in this one; all on the same cores, so
that latencies are upper bounds. Counts of lost requests are asserted: a benchmark that loses one fails.
"""

import asyncio
import contextlib
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

import httpx
import uvloop

from fleet.agent.gateway.envoy import inotify
from tests.agent.gateway.load import Load
from tests.agent.gateway.place import KEY, Place, ReplicaProcess, chat, ready, rule
from tests.perf import load
from tests.perf.harness import Row
from tests.waiting import eventually, free_port

ENDPOINTS, REPLICAS, CHANGES = 500, 4, 30
CALLERS = 50
REQUESTS_ALONE, REQUESTS_EACH, GAP_SECONDS = 1_000, 40, 0.2
ROUNDS = 3


def run(out):
    """Return the rows of all three parts."""
    return [*changes(), *failures(), *latency()]


@contextlib.contextmanager
def gateway():
    """A gateway without routes."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder:
        place = Place(Path(folder) / "gateway").start()
        try:
            yield place
        finally:
            place.end()


@contextlib.contextmanager
def replicas(*names):
    """Replicas that run."""
    started = [ReplicaProcess(name) for name in names]
    try:
        yield started
    finally:
        for replica in started:
            replica.end()


@contextlib.contextmanager
def enough_watches():
    """Raise the system's limit of file watchers as the installer of a gateway does, where that is possible, for a while."""
    before = inotify.limit()
    try:
        inotify.LIMIT.write_text("16384")
    except OSError:
        yield
        return
    try:
        yield
    finally:
        inotify.LIMIT.write_text(str(before))


# ---- changes


def changes():
    """Change the replicas of one endpoint out of many, again and again."""
    rows = []
    with replicas("one", "two") as pair:
        with enough_watches():
            rows += _changes(pair, f"{ENDPOINTS} endpoints x {REPLICAS} replicas")
        rows += _changes(pair, "the same where the system allows 128 watchers", is_first=False)
    return rows


def _changes(pair, title, *, is_first=True):
    # Replicas are checked for their port alone, and never called: thousands of real ones would be what is measured.
    others = [free_port() for _ in range(REPLICAS - 1)]
    with gateway() as place:
        routes = [_route(number, pair[0], others) for number in range(ENDPOINTS)]
        began = time.perf_counter()
        place.say(*routes, keys=[rule(1)])
        first = time.perf_counter() - began
        ready(place, "/e000/echo")
        watched = len(place.lane._plane._files._watched)
        name, effects, costs, written = f"e{ENDPOINTS - 1:03d}", [], [], []
        apply = place.lane._plane.apply

        def timed(wanted):
            at = time.thread_time()
            written.append(apply(wanted))
            costs.append(time.thread_time() - at)
            return written[-1]

        place.lane._plane.apply = timed
        with httpx.Client(headers={"authorization": f"Bearer {KEY}"}) as client:
            for turn in range(CHANGES):
                now = pair[(turn + 1) % 2]
                at = time.perf_counter()
                place.say(_route(ENDPOINTS - 1, now, []), wait=False)
                while client.get(f"{place.url}/{name}/echo").json()["name"] != now.name:
                    pass
                effects.append((time.perf_counter() - at) * 1000)
        files = len(place.lane._plane.rewritten)
    note = (
        f"{watched} of {ENDPOINTS} with a file of their own"
        if is_first or watched < ENDPOINTS
        else "not tried: no limit here"
    )
    return [
        Row(f"change to effect, p50: {title}", statistics.median(effects), "ms", goal="<= 2000", note=note),
        Row(
            "  the longest of them",
            max(effects),
            "ms",
            goal="<= 2000",
            note=f"{CHANGES} changes, each told by a panel on loopback",
        ),
        Row("  rewritten by one change", statistics.median(written), "bytes", note=f"{files} file(s)"),
        Row("  agent's processor time for one change", statistics.median(costs) * 1000, "ms"),
        Row("  first configuration, to the last endpoint served", first * 1000, "ms"),
    ]


def _route(number, serving, others):
    from fleet.agent.orders import Upstream

    ends = [Upstream(number * 10 + index, "127.0.0.1", port, 8) for index, port in enumerate(others, 1)]
    return chat(f"e{number:03d}", serving.upstream(number * 10, slots=8), *ends, health_path="")


# ---- failures


def failures():
    """Lose one of two replicas under load, in two ways."""
    return [*_failure(signal.SIGKILL, "killed"), *_failure(signal.SIGSTOP, "frozen")]


def _failure(number, word):
    request = {"stream": True, "n": 20, "gap": 0.05}
    with replicas("one", "two") as (one, two), gateway() as place:
        place.say(
            chat("chat", one.upstream(1), two.upstream(2), first_byte_seconds=1.5, idle_seconds=1.5), keys=[rule(1)]
        )
        ready(place, "/chat/echo")
        with Load(place, "/chat/v1", request, CALLERS) as callers:
            eventually(lambda: callers.outcomes["ok"], lambda count: count >= 2 * CALLERS)
            struck = time.monotonic()
            one.signal(number)
            so_far = callers.outcomes["ok"]
            eventually(lambda: callers.outcomes["ok"], lambda count: count >= so_far + 4 * CALLERS)
            if number == signal.SIGSTOP:
                one.signal(signal.SIGCONT)
            else:
                one.process.wait()
                reborn = ReplicaProcess("one", one.port)
            back = _seconds_until_back(place)
        if number == signal.SIGKILL:
            reborn.end()
    assert callers.failed == {}, callers.failed
    cuts = [end - struck for end, _, outcome in callers.ends if outcome == "cut"]
    slowest = max(seconds for end, seconds, outcome in callers.ends if outcome == "ok" and end > struck)
    return [
        Row(
            f"one of two replicas {word}, {CALLERS} streams: requests lost that had not begun",
            len(callers.failed),
            "",
            goal="0",
            note=f"of {callers.begun}",
        ),
        Row("  streams cut that had begun on it", len(cuts), "", note="no gateway can give them back"),
        Row("  the last of those, after the stroke", max(cuts, default=0.0), "s"),
        Row("  longest request that was whole", slowest, "s", note="a stream takes 1 s alone"),
        Row("  until it took requests again, once well", back, "s"),
    ]


def _seconds_until_back(place):
    began = time.monotonic()
    with httpx.Client(headers={"authorization": f"Bearer {KEY}"}) as client:
        while client.get(f"{place.url}/chat/echo").json()["name"] != "one":
            assert time.monotonic() - began < 30
    return time.monotonic() - began


# ---- what it adds


def latency():
    """Ask a replica directly, through Envoy, and through Envoy with a key."""
    rows = []
    with replicas("one") as (one,), gateway() as place:
        place.say(
            chat("open", one.upstream(1), requires_key=False),
            chat("keyed", one.upstream(1)),
            keys=[rule(1), *(rule(number, f"fdk_{number}") for number in range(2, 1_000))],
        )
        ready(place, "/keyed/echo")
        ways = {
            "direct": (one.port, "/echo", {}),
            "Envoy": (place.order.port, "/open/echo", {}),
            "Envoy and key": (place.order.port, "/keyed/echo", {"Authorization": f"Bearer {KEY}"}),
        }
        for connections, each, gap in ((1, REQUESTS_ALONE, 0.0), (CALLERS, REQUESTS_EACH, GAP_SECONDS)):
            found = {way: [] for way in ways}
            spent = dict.fromkeys(ways, 0.0)
            for _ in range(ROUNDS):  # in turns, so that what else happens on the machine strikes all alike
                for way, (port, path, headers) in ways.items():
                    prepared = [load.request(port, path, headers, b"{}")] * (each // ROUNDS)
                    before = processor_seconds(place.lane.pid)
                    found[way] += paced(port, [prepared] * connections, gap)
                    spent[way] += processor_seconds(place.lane.pid) - before
            medians = {way: statistics.median(seconds) * 1000 for way, seconds in found.items()}
            rows += [_latency_row(way, connections, medians, sorted(seconds)) for way, seconds in found.items()]
            rows += [
                Row(f"  {way}: its processor time for one request", spent[way] / len(found[way]) * 1e6, "us")
                for way in list(ways)[1:]
            ]
    return rows


def processor_seconds(pid):
    """How long a process has been computing so far, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Paced(load.Connection):
    """Sends its next request a while after the answer to the last: what is measured is a busy gateway, not a full one."""

    def __init__(self, requests, done, gap):
        super().__init__(requests, done)
        self._gap = gap
        self._is_first = True

    def _next(self):
        if self._gap and not self._is_first:
            asyncio.get_running_loop().call_later(self._gap, super()._next)
        else:
            self._is_first = False
            super()._next()


async def _paced(port, streams, gap):
    loop = asyncio.get_running_loop()
    done = [loop.create_future() for _ in streams]
    connections = []
    for stream, end in zip(streams, done, strict=True):
        connections.append(
            (await loop.create_connection(lambda s=stream, d=end: Paced(s, d, gap), "127.0.0.1", port))[1]
        )
        await asyncio.sleep(gap / len(streams))  # spread over the time between two requests of one
    await asyncio.gather(*done)
    # The first request of a connection also makes the gateway's own connection to the replica.
    return [one for connection in connections for one in connection.seconds[1:]]


def paced(port, streams, gap):
    """Send each stream over a connection of its own; returns each request's seconds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_paced(port, streams, gap))


def _latency_row(way, connections, medians, seconds):
    added = "" if way == "direct" else f"; {medians[way] - medians['direct']:+.2f} ms at the median"
    return Row(
        f"{connections} caller{'s' if connections > 1 else ''}, {way}: p50",
        medians[way],
        "ms",
        peer="" if way == "direct" else "direct",
        ratio=None if way == "direct" else medians[way] / medians["direct"],
        note=f"p99 {seconds[int(len(seconds) * 0.99)] * 1000:.2f} ms, {len(seconds):,} requests{added}",
    )
