"""What lists of probes show of many at once: the last results as a bar, percentiles of a day, what came last. Few queries."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from monitoring.percentiles import Percentile
from monitoring.probing.models import Probe
from monitoring.probing.reading import Latency, latency_of
from monitoring.probing.tables import CONNECTIONS, METRICS

BAR: Final = 90
FRESH: Final = timedelta(minutes=5)
LONGEST_BAR: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Check:
    """One result in a bar. server_id 0: the panel."""

    at: datetime
    server_id: int
    connection: str
    outcome: str
    is_suspect: bool


def bars(probes: Sequence[Probe], *, at: datetime) -> dict[int, list[Check]]:
    """Return the newest 90 results of each probe, of all its places, the oldest first. One query."""
    if not probes:
        return {}
    starts = [at - min(timedelta(seconds=probe.interval_seconds * BAR * 1.2) + FRESH, LONGEST_BAR) for probe in probes]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT wanted.id, r.started_at, r.server_id, r.connection, r.outcome, r.is_suspect"
            " FROM unnest(%s::bigint[], %s::timestamptz[]) AS wanted(id, since) CROSS JOIN LATERAL ("
            " SELECT started_at, server_id, connection, outcome, is_suspect FROM probe_result"
            " WHERE probe_id = wanted.id AND started_at > wanted.since ORDER BY started_at DESC LIMIT %s) r"
            " ORDER BY r.started_at",
            [[probe.pk for probe in probes], starts, BAR],
        )
        rows = cursor.fetchall()
    found: defaultdict[int, list[Check]] = defaultdict(list)
    for probe_id, started_at, server_id, code, outcome, is_suspect in rows:
        found[probe_id].append(Check(started_at, server_id, CONNECTIONS[code], outcome, is_suspect))
    return dict(found)


def latencies(probes: Sequence[Probe], *, start: datetime, end: datetime) -> dict[int, list[Latency]]:
    """Return the percentiles of each probe's own metric for each place and kind of connection, exact. One query."""
    wanted = {probe.pk: probe for probe in probes}
    if not wanted:
        return {}
    codes = sorted({METRICS.index(probe.metric) for probe in probes})
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT probe_id, server_id, connection, metric, string_agg(durations, ''::bytea) FROM probe_chunk"
            " WHERE probe_id = ANY(%s) AND metric = ANY(%s) AND at >= %s AND at < %s GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3",
            [list(wanted), codes, start, end],
        )
        rows = cursor.fetchall()
    found: defaultdict[int, list[Latency]] = defaultdict(list)
    for probe_id, server_id, code, metric, durations in rows:
        probe = wanted[probe_id]
        if METRICS[metric] == probe.metric:
            place = (server_id, CONNECTIONS[code])
            found[probe_id].append(latency_of(place, bytes(durations), probe.threshold_ms))
    return dict(found)


def worst(found: Sequence[Latency]) -> Latency | None:
    """Return the place that is worst off: by its median, then by its 99th percentile; places are never pooled."""

    def weight(entry: Latency) -> tuple[float, ...]:
        return tuple(_or_zero(entry.percentiles[place]) for place in (0, 2))

    return max(found, key=weight, default=None)


def _or_zero(found: Percentile) -> float:
    return found.value_ms or 0.0


def uptime_percent(found: Latency) -> float | None:
    """Return how many of a hundred results were ok; None without any. What the place itself was to blame for is in neither."""
    n = found.percentiles[0].n
    return 100 * (1 - found.failures / n) if n else None


def newest_results(*, at: datetime) -> Mapping[str, Any]:
    """Return the newest result of each probe of the last five minutes, as the live topic tells it. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT ON (probe_id) probe_id, server_id, connection, started_at, outcome, e2e_ms, ttft_ms"
            " FROM probe_result WHERE started_at > %s ORDER BY probe_id, started_at DESC LIMIT 5000",
            [at - FRESH],
        )
        rows = cursor.fetchall()
    return {
        str(row[0]): {
            "server": row[1] or None,
            "connection": CONNECTIONS[row[2]],
            "started_ms": round(row[3].timestamp() * 1000),
            "outcome": row[4],
            "e2e_ms": row[5],
            "ttft_ms": row[6],
        }
        for row in rows
    }
