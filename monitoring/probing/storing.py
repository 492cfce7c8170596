"""Results into their tables: each once, however often it is told, and their durations into chunks of five minutes."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import numpy as np
from django.db import connection, transaction

from fleet.agent.probes.result import ProbeResult
from monitoring.probing.live import results_tell
from monitoring.probing.models import Probe
from monitoring.probing.tables import (
    CHUNK_SECONDS,
    CONNECTIONS,
    KEPT_DAYS,
    MARK,
    MARK_STEP_MS,
    SUSPECT,
    durations_of,
)  # fmt: skip

# A result older than this, or from further in the future, has no partition and no meaning.
OLDEST: Final = timedelta(days=min(KEPT_DAYS, 2))
AHEAD: Final = timedelta(minutes=5)
_COLUMNS: Final = (
    "probe_id", "server_id", "connection", "started_at", "outcome", "reason", "e2e_ms", "ttft_ms", "ttfb_ms",
    "is_suspect", "facts",
)  # fmt: skip
_OWN: Final = frozenset({"target", "vantage", "connection", "started_ms", "outcome", "reason", "is_suspect"})

ChunkKey = tuple[int, int, int, int, datetime]


def results_store(*, server_id: int, results: Sequence[ProbeResult], known: Collection[int], at: datetime) -> int:
    """Store what a place found (server_id 0: the panel) and return how many were new; those of unknown probes are left.

    Telling the same results again changes nothing.
    """
    taken = [each for each in results if each.target in known and _is_storable(each, at)]
    if not taken:
        return 0
    with transaction.atomic():
        new = _insert(server_id, taken)
        _append(server_id, new)
        results_tell(server_id, new)
    return len(new)


def _started(result: ProbeResult) -> datetime:
    return datetime.fromtimestamp(result.started_ms / 1000, UTC)


def _is_storable(result: ProbeResult, at: datetime) -> bool:
    try:
        return at - OLDEST < _started(result) < at + AHEAD
    except (ValueError, OverflowError, OSError):
        return False


def _real(value: float | None) -> float | None:
    """Return a duration that a real column holds, None for what is none."""
    return value if value is not None and math.isfinite(value) and 0 <= value < 1e30 else None


def _row(server_id: int, result: ProbeResult) -> tuple[Any, ...]:
    facts = {key: value for key, value in msgspec.to_builtins(result).items() if key not in _OWN}
    return (
        result.target, server_id, CONNECTIONS.index(result.connection), _started(result), result.outcome, result.reason,
        _real(result.e2e_ms), _real(result.ttft_ms), _real(result.ttfb_ms), result.is_suspect,
        msgspec.json.encode(facts).decode().replace("\\u0000", ""),
    )  # fmt: skip


def _insert(server_id: int, results: Sequence[ProbeResult]) -> list[ProbeResult]:
    """Insert what is not there; returns it."""
    by_key = {(each.target, CONNECTIONS.index(each.connection), _started(each)): each for each in results}
    marks = ", ".join(["(" + ", ".join(["%s"] * len(_COLUMNS)) + ")"] * len(by_key))
    values = [value for each in by_key.values() for value in _row(server_id, each)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO probe_result ({', '.join(_COLUMNS)}) VALUES {marks}"  # noqa: S608 (names of ours)
            " ON CONFLICT DO NOTHING RETURNING probe_id, connection, started_at",
            values,
        )
        return [by_key[row] for row in cursor.fetchall()]


def _append(server_id: int, results: Iterable[ProbeResult]) -> None:
    """Add durations to the chunks that they belong to, always in the same order so that two writers never wait crosswise."""
    chunks: defaultdict[ChunkKey, list[tuple[float, int, int]]] = defaultdict(list)
    for result in results:
        second = result.started_ms // 1000
        at = datetime.fromtimestamp(second - second % CHUNK_SECONDS, UTC)
        offset = result.started_ms % (1000 * CHUNK_SECONDS) // MARK_STEP_MS
        flags = SUSPECT if result.is_suspect else 0
        for metric, duration in durations_of(result).items():
            if duration >= 0:
                key = (result.target, server_id, CONNECTIONS.index(result.connection), metric, at)
                chunks[key].append((duration, offset, flags))
    if not chunks:
        return
    marks = ", ".join(["(%s, %s, %s, %s, %s, %s, %s)"] * len(chunks))
    values = [part for key in sorted(chunks) for part in (*key, *_packed(chunks[key]))]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO probe_chunk (probe_id, server_id, connection, metric, at, durations, marks) VALUES {marks}"  # noqa: S608
            " ON CONFLICT (probe_id, server_id, connection, metric, at)"
            " DO UPDATE SET durations = probe_chunk.durations || EXCLUDED.durations,"
            " marks = probe_chunk.marks || EXCLUDED.marks",
            values,
        )


def _packed(parts: Sequence[tuple[float, int, int]]) -> tuple[bytes, bytes]:
    """Return durations and their marks as a chunk holds them."""
    durations = np.asarray([duration for duration, _, _ in parts], dtype="<f4")
    return durations.tobytes(), np.array([(offset, flags) for _, offset, flags in parts], dtype=MARK).tobytes()


def known_probes(server_id: int) -> set[int]:
    """Return the ids of the probes that a place is asked for, those that are paused too: their last results may be on the way."""
    from monitoring.probing.targets import vantage_names

    names = vantage_names(server_id)
    return {pk for pk, vantages in Probe.objects.values_list("pk", "vantages") if names & set(vantages)}
