"""Probes: what measuring adds to a true 20 ms hold, and what it costs, beside blackbox_exporter and curl in the same run.

Everybody opens a new connection for each probe, to the same server in a process of its own. Rounds alternate between us and
the peers; what is shown is the median of the rounds.
"""

import asyncio
import contextlib
import multiprocessing
import statistics
import subprocess
import sys
import time

from tests.perf.harness import Row
from tests.perf.probes_peers import CURL, Curl, blackbox, in_mode
from tests.perf.probes_server import HOLD_SECONDS

COUNTS = {"alone": 150, "paced": 800, "50 at once": 200, "200 at once": 400}
ROUNDS = 3
GOALS = {"alone": "<= 1.0", "paced": "<= 1.0", "50 at once": "", "200 at once": ""}
MISSING = "blackbox_exporter is not installed (Debian package prometheus-blackbox-exporter): not measured"


def prober_process(pipe):
    """Answer (mode, port, is_tls, count) with (added errors in ms, CPU seconds), until None comes."""
    from fleet.agent.probes.addresses import Rules
    from fleet.agent.probes.prober import Prober
    from fleet.agent.probes.target import Target

    async def measure(mode, port, is_tls, count):
        target = Target(id=1, kind="http", host="127.0.0.1", port=port, is_tls=is_tls, is_verified=not is_tls)
        async with Prober("bench", rules=Rules(is_private_allowed=True), contexts=contexts) as prober:

            async def one():
                found = await prober.run(target)
                assert found.outcome == "ok", found
                return found.total_ms - HOLD_SECONDS * 1000

            began = time.process_time()
            return await in_mode(mode, one, count), time.process_time() - began

    from fleet.agent.probes.tls import Contexts

    contexts = Contexts()
    while asked := pipe.recv():
        pipe.send(asyncio.run(measure(*asked)))


class Ours:
    """The prober in a process of its own."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=prober_process, args=(other,), daemon=True)
        self._process.start()

    def measure(self, mode, url, count):
        scheme, _, rest = url.partition("://")
        port = int(rest.rpartition(":")[2].rstrip("/"))
        self._pipe.send((mode, port, scheme == "https", count))
        return self._pipe.recv()

    def close(self):
        self._pipe.send(None)
        self._process.join(10)


@contextlib.contextmanager
def holding_server():
    """Run the server; yields its addresses, plain and with TLS."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.perf.probes_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        plain, tls = process.stdout.readline().split()
        yield {"plain": f"http://127.0.0.1:{plain}/", "TLS": f"https://127.0.0.1:{tls}/"}
    finally:
        process.stdin.close()
        process.wait(10)


def p99(errors):
    """Return the 99th percentile (by rank)."""
    return sorted(errors)[max(-(-99 * len(errors) // 100) - 1, 0)]


def figures(rounds):
    """Return the medians over rounds of (p50, p99, CPU µs per probe); None without figures."""
    found = [(statistics.median(errors), p99(errors), cpu / len(errors) * 1e6) for errors, cpu in rounds if errors]
    return tuple(statistics.median(values) for values in zip(*found, strict=True)) if found else None


def rows_of(way, mode, ours, black, curl):
    """Return the rows of one way (plain, TLS) and mode."""
    note = MISSING if black is None else ""
    if curl:
        note += ("; " if note else "") + f"curl: {curl[0]:.2f} / {curl[1]:.2f} ms, {curl[2]:,.0f} µs"
    peer = "" if black is None else f"blackbox {black[0]:.2f} / {black[1]:.2f} ms, {black[2]:,.0f} µs"
    name, goal = f"{way}, {mode}", GOALS[mode]
    ratios = [None] * 3 if black is None else [mine / theirs for mine, theirs in zip(ours, black, strict=True)]
    return [
        Row(f"{name}: added error, p50", ours[0], "ms", peer, ratios[0], goal, note),
        Row(f"{name}: added error, p99", ours[1], "ms", peer, ratios[1]),
        Row(f"{name}: CPU per probe", ours[2], "µs", peer, ratios[2], "<= 1.0"),
    ]


def run(_out):
    """Return the rows of `python -m tests.perf probes`."""
    rows = []
    with holding_server() as urls, blackbox() as black, contextlib.closing(Ours()) as ours:
        curl = Curl() if CURL else None
        probers = [prober for prober in (ours, black, curl) if prober]
        for way, url in urls.items():
            for prober in probers:
                prober.measure("alone", url, 10)
            for mode, count in COUNTS.items():
                found = {prober: [] for prober in probers}
                for _ in range(ROUNDS):
                    for prober in probers:
                        found[prober].append(prober.measure(mode, url, min(count, 50) if prober is curl else count))
                shown = [figures(found[prober]) if prober else None for prober in (ours, black, curl)]
                rows += rows_of(way, mode, *shown)
    return rows
