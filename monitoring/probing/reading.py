"""Percentiles over any range, exact from chunks; histograms for what is older than those are kept. Never an average of them."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.db import connection

from monitoring.percentiles import Percentile, percentiles, share_over
from monitoring.probing.tables import CHUNK_SECONDS, CONNECTIONS, METRICS

QUANTILES: Final = (0.5, 0.95, 0.99)
MOST_RESULTS: Final = 500
Vantage = tuple[int, str]  # server id (0: the panel), cold or warm


@dataclass(frozen=True, slots=True)
class Latency:
    """What one place found of one probe over a range. over: share over the threshold, failures included; None without one."""

    server_id: int
    connection: str
    percentiles: Sequence[Percentile]
    over: float | None
    failures: int


def _chunks(probe_id: int, metric: str, start: datetime, end: datetime) -> list[tuple[int, int, datetime, bytes]]:
    """Return (server id, connection's code, time, durations) of the chunks that begin in the range."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT server_id, connection, at, durations FROM probe_chunk"
            " WHERE probe_id = %s AND metric = %s AND at >= %s AND at < %s ORDER BY at",
            [probe_id, METRICS.index(metric), start, end],
        )
        return [(row[0], row[1], row[2], bytes(row[3])) for row in cursor.fetchall()]


def hour_values(hour: datetime) -> dict[tuple[int, int, str, str], npt.NDArray[np.float64]]:
    """Return all durations of an hour by (probe, server id, connection, metric). One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT probe_id, server_id, connection, metric, string_agg(durations, ''::bytea ORDER BY at)"
            " FROM probe_chunk WHERE at >= %s AND at < %s GROUP BY 1, 2, 3, 4",
            [hour, hour + timedelta(hours=1)],
        )
        return {
            (row[0], row[1], CONNECTIONS[row[2]], METRICS[row[3]]): _values([bytes(row[4])])
            for row in cursor.fetchall()
        }


def _values(parts: Sequence[bytes]) -> npt.NDArray[np.float64]:
    return np.frombuffer(b"".join(parts), dtype="<f4").astype(np.float64)


def aligned(moment: datetime) -> datetime:
    """Return the beginning of the chunk in which a moment lies."""
    seconds = int(moment.timestamp())
    return datetime.fromtimestamp(seconds - seconds % CHUNK_SECONDS, UTC)


def latency(
    *, probe_id: int, metric: str, start: datetime, end: datetime, threshold_ms: float | None = None
) -> list[Latency]:
    """Return percentiles for each place and kind of connection, exact, over whole chunks of five minutes. One query.

    Places are never pooled: they see different distributions.
    """
    parts: defaultdict[Vantage, list[bytes]] = defaultdict(list)
    for server_id, code, _at, durations in _chunks(probe_id, metric, aligned(start), end):
        parts[server_id, CONNECTIONS[code]].append(durations)
    return [_latency(vantage, _values(found), threshold_ms) for vantage, found in sorted(parts.items())]


def latency_of(vantage: Vantage, durations: bytes, threshold_ms: float | None) -> Latency:
    """Return what one place found, from durations as chunks hold them."""
    return _latency(vantage, _values([durations]), threshold_ms)


def _latency(vantage: Vantage, values: npt.NDArray[np.float64], threshold_ms: float | None) -> Latency:
    return Latency(
        server_id=vantage[0],
        connection=vantage[1],
        percentiles=percentiles(values, QUANTILES),
        over=share_over(values, threshold_ms) if threshold_ms is not None else None,
        failures=int(np.isinf(values).sum()),
    )


def latency_series(
    *, probe_id: int, metric: str, start: datetime, end: datetime, points: int
) -> tuple[int, dict[Vantage, list[tuple[datetime, list[Percentile]]]]]:
    """Return (seconds of a step, percentiles of each step for each place); steps are whole chunks, at most `points` of them."""
    seconds = max((end - start).total_seconds(), 1.0)
    step = max(math.ceil(seconds / points / CHUNK_SECONDS), 1) * CHUNK_SECONDS
    groups: defaultdict[Vantage, defaultdict[datetime, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for server_id, code, at, durations in _chunks(probe_id, metric, aligned(start), end):
        second = int(at.timestamp())
        groups[server_id, CONNECTIONS[code]][datetime.fromtimestamp(second - second % step, UTC)].append(durations)
    found = {
        vantage: [(at, percentiles(_values(parts), QUANTILES)) for at, parts in sorted(steps.items())]
        for vantage, steps in sorted(groups.items())
    }
    return step, found


def results(*, probe_id: int, start: datetime, end: datetime, limit: int = 100) -> list[Mapping[str, Any]]:
    """Return the newest results of a range, the newest first, with every phase. One query, at most MOST_RESULTS rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT server_id, connection, started_at, outcome, reason, is_suspect, facts FROM probe_result"
            " WHERE probe_id = %s AND started_at >= %s AND started_at < %s ORDER BY started_at DESC LIMIT %s",
            [probe_id, start, end, min(limit, MOST_RESULTS)],
        )
        return [_result(row) for row in cursor.fetchall()]


def _result(row: Sequence[Any]) -> Mapping[str, Any]:
    server_id, code, started_at, outcome, reason, is_suspect, facts = row
    told = facts if isinstance(facts, dict) else json.loads(facts)
    return {
        **told,
        "server": server_id or None,
        "connection": CONNECTIONS[code],
        "started_at": started_at,
        "outcome": outcome,
        "reason": reason,
        "is_suspect": is_suspect,
    }


def latest(*, probe_ids: Sequence[int], at: datetime) -> dict[int, list[Mapping[str, Any]]]:
    """Return the newest result of each place and connection of the last hour, for many probes. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT ON (probe_id, server_id, connection) server_id, connection, started_at, outcome, reason,"
            " is_suspect, facts, probe_id FROM probe_result WHERE probe_id = ANY(%s) AND started_at > %s"
            " ORDER BY probe_id, server_id, connection, started_at DESC",
            [list(probe_ids), at - timedelta(hours=1)],
        )
        rows = cursor.fetchall()
    found: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row[7]].append(_result(row[:7]))
    return dict(found)
