"""What probes found lately, out of chunks: valid samples of each series with their times. Old chunks are read once in a while."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from monitoring.probing.tables import CHUNK_SECONDS, CONNECTIONS, MARK, MARK_STEP_MS, METRICS, SUSPECT

# Chunks older than this are read again every so often: agents that were away tell late.
FRESH_SECONDS: Final = 600
REREAD_SECONDS: Final = 600
SeriesKey = tuple[int, int, str, str]  # probe, server (0: the panel), connection, metric


@dataclass(frozen=True, slots=True)
class Samples:
    """at: Unix seconds, ascending; values: ms, inf for a failure; suspect: measured while the place was not well."""

    at: NDArray[np.float64]
    values: NDArray[np.float32]
    suspect: NDArray[np.bool_]

    def between(self, start: float, end: float) -> "Samples":
        """Return those in [start, end)."""
        first, last = self.at.searchsorted((start, end), side="left").tolist()
        return Samples(self.at[first:last], self.values[first:last], self.suspect[first:last])


def joined(parts: Iterable[Samples]) -> Samples:
    """Return samples of several parts together, in order."""
    found = list(parts)
    at = np.concatenate([each.at for each in found])
    values = np.concatenate([each.values for each in found])
    suspect = np.concatenate([each.suspect for each in found])
    if len(at) > 1 and (at[1:] < at[:-1]).any():
        order = at.argsort(kind="stable")
        return Samples(at[order], values[order], suspect[order])
    return Samples(at, values, suspect)


_ROWS: Final = """
    SELECT probe_id, server_id, connection, metric, array_agg(extract(epoch FROM at)::bigint ORDER BY at),
        array_agg(octet_length(durations) / 4 ORDER BY at), string_agg(durations, ''::bytea ORDER BY at),
        string_agg(marks, ''::bytea ORDER BY at), bool_and(octet_length(marks) * 4 = octet_length(durations) * 3)
    FROM probe_chunk WHERE at >= %s AND at < %s AND metric = ANY(%s)
"""


def read_history(
    *, start: float, end: float, metrics: Collection[str], probe_ids: Collection[int] | None = None
) -> dict[SeriesKey, Samples]:
    """Return all samples of whole chunks that begin in [start, end), by series. One query."""
    sql = _ROWS
    values: list[Any] = [_moment(start), _moment(end), [METRICS.index(each) for each in metrics]]
    if probe_ids is not None:
        sql, values = sql + " AND probe_id = ANY(%s)", [*values, list(probe_ids)]
    with connection.cursor() as cursor:
        cursor.execute(sql + " GROUP BY 1, 2, 3, 4", values)
        rows = cursor.fetchall()
    return {(row[0], row[1], CONNECTIONS[row[2]], METRICS[row[3]]): _samples(row[4:]) for row in rows}


def _moment(second: float) -> datetime:
    whole = int(second)
    return datetime.fromtimestamp(whole - whole % CHUNK_SECONDS, UTC)


def _samples(row: tuple[Any, ...]) -> Samples:
    starts, counts, durations, marks, is_marked = row
    values = np.frombuffer(bytes(durations), dtype="<f4")
    base = np.repeat(np.asarray(starts, dtype=np.float64), counts)
    if is_marked:
        told = np.frombuffer(bytes(marks), dtype=MARK)
        at = base + told["offset"] * (MARK_STEP_MS / 1000)
        suspect = (told["flags"] & SUSPECT) != 0
    else:
        at = base + np.concatenate([(np.arange(each) + 0.5) * (CHUNK_SECONDS / max(each, 1)) for each in counts])
        suspect = np.zeros(len(values), dtype=bool)
    return joined([Samples(at, values, suspect)])


class ProbeHistory:
    """The history that rules look at, kept by a process between rounds. A round reads what is new, and all of it now and then."""

    def __init__(self) -> None:
        self._old: dict[SeriesKey, Samples] = {}
        self._until = 0.0
        self._read_at = 0.0
        self._seconds = 0.0
        self._metrics: frozenset[str] = frozenset()

    def forget(self) -> None:
        """Read everything anew at the next round."""
        self._read_at = 0.0

    def read(self, *, now: float, seconds: float, metrics: Collection[str]) -> dict[SeriesKey, Samples]:
        """Return the samples of the last `seconds`, by series."""
        wanted = frozenset(metrics)
        is_stale = not 0 <= now - self._read_at < REREAD_SECONDS
        if is_stale or wanted != self._metrics or seconds != self._seconds:
            self._until = float(int(now - FRESH_SECONDS) // CHUNK_SECONDS * CHUNK_SECONDS)
            self._old = read_history(start=now - seconds, end=self._until, metrics=wanted)
            self._read_at, self._metrics, self._seconds = now, wanted, seconds
        fresh = read_history(start=self._until, end=now + CHUNK_SECONDS, metrics=wanted)
        keys = self._old.keys() | fresh.keys()
        return {key: joined([part[key] for part in (self._old, fresh) if key in part]) for key in keys}
