"""Reading the samples themselves: the open hour, and hours that are about to be closed."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitoring.store.sql import fetch_row
from monitoring.store.tables import SubjectKind


@dataclass(frozen=True, slots=True)
class Rows:
    """Samples in no order. subjects and at_ms: (rows), values: (rows × asked metrics), NaN for none.

    reasons: -1 for none; empty unless asked for.
    """

    subjects: NDArray[np.int32]
    at_ms: NDArray[np.int64]
    values: NDArray[np.float32]
    reasons: NDArray[np.int32]


def moment(unix_ms: int) -> datetime:
    """Return the time as Postgres wants it."""
    return datetime.fromtimestamp(unix_ms / 1000, tz=UTC)


def raw_rows(
    kind: SubjectKind,
    *,
    columns: Collection[str],
    start_ms: int,
    end_ms: int,
    subject_ids: Collection[int] | None = None,
    with_reasons: bool = False,
) -> Rows:
    """Return the samples of [start, end) of these subjects (None: of all). One query."""
    wanted = ["array_agg(subject_id)", "array_agg(at)"]
    wanted += [f"array_agg(coalesce({column}, 'NaN'))" for column in columns]
    if with_reasons and kind.has_reasons:
        wanted.append("array_agg(coalesce(clock_event_reasons, -1))")
    condition = "" if subject_ids is None else " AND subject_id = ANY(%(subjects)s)"
    row = fetch_row(
        f"SELECT {', '.join(wanted)} FROM {kind.samples.name} WHERE at >= %(start)s AND at < %(end)s{condition}",  # noqa: S608 - names of the catalogue
        {"start": moment(start_ms), "end": moment(end_ms), "subjects": list(subject_ids or ())},
    )
    return _rows_of(row, len(columns), has_reasons=with_reasons and kind.has_reasons)


def _rows_of(row: tuple[Any, ...], width: int, *, has_reasons: bool) -> Rows:
    if row[0] is None:
        nothing = np.empty(0, dtype=np.int32)
        return Rows(nothing, nothing.astype(np.int64), np.empty((0, width), dtype=np.float32), nothing)
    values = np.stack(row[2 : 2 + width], axis=1) if width else np.empty((len(row[0]), 0), dtype=np.float32)
    reasons = row[-1] if has_reasons else np.full(len(row[0]), -1, dtype=np.int32)
    return Rows(row[0], row[1], values, reasons)
