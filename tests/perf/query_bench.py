"""Reading: 24 h of 64 cards at 10 s in 300 buckets, averages and maxima, the open hour included; beside VictoriaMetrics.

Ours is the whole path from the question to the bytes of the answer (queries, buckets, encoding); the peer answers two
questions, one for averages and one for maxima, over a kept connection, and its bytes are read and not parsed. Both in turn.
"""

import http.client
import statistics
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import numpy as np

from tests.perf import fleet_data, peers
from tests.perf.harness import Row
from tests.perf.store_bench import database, put_cards

CARDS = 64
STEP_MS = 10_000
HOURS = 24
POINTS = 300
RUNS = 25
METRIC = "power_watts"
GOAL_JSON = 0.6
GOAL_FRAME = 0.2


def fill(now_ms):
    """Insert the day and bring the store up to now."""
    from monitoring.store.closing import close_hours
    from monitoring.store.rolling import OPEN_LEVELS, roll_open
    from monitoring.store.tables import GPU
    from panel.core.partitions import partitions_make

    start_ms = now_ms - HOURS * 3_600_000
    today = datetime.fromtimestamp(now_ms / 1000, tz=UTC).date()
    partitions_make(GPU.samples, first=today - timedelta(days=1), last=today)
    put_cards(start_ms, range(CARDS), HOURS * 3_600_000 // STEP_MS)
    close_hours(GPU, now_ms=now_ms)
    for level in OPEN_LEVELS:
        roll_open(GPU, level, now_ms=now_ms - 30_000)  # as a tick half a minute ago left it
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def ours(now_ms, encode, cards):
    """Answer the chart once; returns its bytes."""
    from monitoring.api.encoding import SeriesAnswer
    from monitoring.selectors import series

    end = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    start = end - timedelta(hours=HOURS)
    result = series(kind="gpu", subject_ids=range(1, cards + 1), metrics=[METRIC], start=start, end=end, points=POINTS)
    return encode(SeriesAnswer(result, start, end))


def aggregate(now_ms):
    """Answer the one line over all cards once."""
    from monitoring.selectors import fleet_series

    end = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    start = end - timedelta(hours=HOURS)
    _, (line,) = fleet_series(gpu_ids=range(1, CARDS + 1), metrics=[METRIC], start=start, end=end, points=POINTS)
    return line.average.tobytes() + line.maximum.tobytes()


class Peer:
    """Asks VictoriaMetrics over one connection."""

    def __init__(self, peer, now_ms):
        self._connection = http.client.HTTPConnection("127.0.0.1", peer.client.base_url.port)
        end = now_ms // 300_000 * 300
        self._range = {"start": end - HOURS * 3600 + 300, "end": end, "step": "300s"}

    def _ask(self, query):
        self._connection.request("GET", "/api/v1/query_range?" + urlencode({"query": query, **self._range}))
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(body[:300])
        return body

    def lines(self, cards):
        """Return averages and maxima of the first cards."""
        chosen = "" if cards == CARDS else '{gpu=~"' + "|".join(str(number) for number in range(cards)) + '"}'
        return self._ask(f"avg_over_time({METRIC}{chosen}[300s])") + self._ask(f"max_over_time({METRIC}{chosen}[300s])")

    def aggregate(self):
        """Return one line over all cards."""
        return self._ask(f"avg(avg_over_time({METRIC}[300s]))") + self._ask(f"max(max_over_time({METRIC}[300s]))")


def fill_peer(peer, now_ms):
    """Give the peer the same samples of the metric that is asked for."""
    count = HOURS * 3_600_000 // STEP_MS
    row = fleet_data.METRICS.index(METRIC)
    for number in range(CARDS):
        values = np.round(fleet_data.card(number, count)[row].astype(np.float64), 3)
        peer.fill(
            METRIC, {"gpu": str(number)}, fleet_data.times(now_ms - HOURS * 3_600_000, count, STEP_MS, number), values
        )
    peer.settle()


def timed(call):
    """Return how long the call took in ms, and how many bytes it returned."""
    began = time.perf_counter()
    size = len(call())
    return (time.perf_counter() - began) * 1000, size


def measure(calls):
    """Run all calls in turn, `RUNS` times after a warm-up; returns {name: (ms of each run, bytes)}."""
    for call in calls.values():
        for _ in range(3):
            call()
    results = {name: [] for name in calls}
    for _ in range(RUNS):
        for name, call in calls.items():
            results[name].append(timed(call))
    return {name: ([ms for ms, _ in rows], rows[0][1]) for name, rows in results.items()}


def compare(name, result, peer, goal):
    """Return the row of one chart beside the peer's: the middle one of the ratios of neighbouring runs, and their quartiles."""
    times, size = result
    ms = statistics.median(times)
    note = f"{size / 1000:,.0f} KB"
    if peer is None:
        missing = peers.MISSING.format("VictoriaMetrics", "victoria-metrics")
        return Row(name, ms, "ms p50", peer="VictoriaMetrics", goal=goal, note=f"{note}; {missing}")
    ratios = [one / other for one, other in zip(times, peer[0], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    note += f"; VictoriaMetrics {statistics.median(peer[0]):.3g} ms, {peer[1] / 1000:,.0f} KB; {low:.2f} to {high:.2f}"
    return Row(name, ms, "ms p50", peer="VictoriaMetrics", ratio=middle, goal=goal, note=note)


def run(_out_dir):
    """Return the rows of the query benchmark."""
    now_ms = int(time.time() * 1000)
    with database(), peers.victoria() as victoria:
        from monitoring.api.encoding import to_frame, to_json

        fill(now_ms)
        calls = {
            "fleet, JSON": lambda: ours(now_ms, to_json, CARDS),
            "fleet, floats": lambda: ours(now_ms, to_frame, CARDS),
            "server, JSON": lambda: ours(now_ms, to_json, 8),
            "server, floats": lambda: ours(now_ms, to_frame, 8),
            "one line over all": lambda: aggregate(now_ms),
        }
        if victoria is not None:
            fill_peer(victoria, now_ms)
            peer = Peer(victoria, now_ms)
            calls["peer fleet"] = lambda: peer.lines(CARDS)
            calls["peer server"] = lambda: peer.lines(8)
            calls["peer aggregate"] = peer.aggregate
        results = measure(calls)
    fleet, server = results.get("peer fleet"), results.get("peer server")
    return [
        compare("64 cards × 24 h, JSON", results["fleet, JSON"], fleet, f"<= {GOAL_JSON}"),
        compare("64 cards × 24 h, floats", results["fleet, floats"], fleet, f"<= {GOAL_FRAME}"),
        compare("8 cards × 24 h, JSON", results["server, JSON"], server, ""),
        compare("8 cards × 24 h, floats", results["server, floats"], server, ""),
        compare("one line over 64 cards", results["one line over all"], results.get("peer aggregate"), ""),
    ]
