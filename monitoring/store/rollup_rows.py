"""Rollup rows in the database: read by subject and time for charts, read whole and replaced by the jobs that roll up."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from monitoring.store.grid import row_span_ms, slots_per_row
from monitoring.store.rollup import Stats, empty
from monitoring.store.rows import Cell, decode_cells, encode_cells, front_of
from monitoring.store.sql import fetch_row
from monitoring.store.tables import HOUR_MS, SubjectKind


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of one level. subjects, starts_ms: (rows); cells: for each asked metric, (rows) of `rows.cell_dtype` or its front.

    until_ms: what the rows were rolled up to when they were read; what comes after is in no row.
    """

    subjects: NDArray[np.int32]
    starts_ms: NDArray[np.int64]
    cells: list[NDArray[np.void]]
    until_ms: int


def rollup_cells(
    kind: SubjectKind,
    level: int,
    *,
    columns: Collection[str],
    subject_ids: Collection[int],
    start_ms: int,
    end_ms: int,
    until_step: str,
) -> Cells:
    """Return the cells of these subjects whose rows touch [start, end), and how far `until_step` has come. One query."""
    span_ms = row_span_ms(level)
    slots = slots_per_row(level)
    wanted = ", ".join(f"array_agg({front_of(column, level, slots)})" for column in columns)
    row = fetch_row(
        f"SELECT array_agg(subject_id), array_agg(hour), {wanted},"  # noqa: S608 - names of the catalogue
        " (SELECT until_ms FROM series_progress WHERE kind = %(kind)s AND step = %(step)s)"
        f" FROM {kind.rollup_table(level)}"
        " WHERE subject_id = ANY(%(subjects)s) AND hour >= %(first)s AND hour < %(end)s",
        {
            "kind": kind.code,
            "step": until_step,
            "subjects": list(subject_ids),
            "first": start_ms // span_ms * span_ms // HOUR_MS,
            "end": -(-end_ms // HOUR_MS),
        },
    )
    subjects, hours, *columns_cells, until_ms = row
    if subjects is None:
        nothing = np.empty(0, dtype=np.int32)
        return Cells(
            nothing,
            nothing.astype(np.int64),
            [decode_cells([], level, slots, front=True) for _ in columns],
            until_ms or 0,
        )
    decoded = [decode_cells(cells, level, slots, front=True) for cells in columns_cells]
    return Cells(subjects, hours.astype(np.int64) * HOUR_MS, decoded, until_ms or 0)


def rollup_load(kind: SubjectKind, level: int, *, subject_ids: Collection[int], hour: int) -> dict[int, Stats]:
    """Return the stored rows that begin at `hour`, by subject, all metrics; locks them until the transaction ends."""
    names = ", ".join(kind.columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT subject_id, {names} FROM {kind.rollup_table(level)}"  # noqa: S608 - names of the catalogue
            " WHERE subject_id = ANY(%s) AND hour = %s FOR UPDATE",
            [list(subject_ids), hour],
        )
        return {row[0]: _stats_of(list(row[1:]), level) for row in cursor.fetchall()}


def _stats_of(cells: list[Any], level: int) -> Stats:
    slots = slots_per_row(level)
    decoded = decode_cells([None if cell is None else bytes(cell) for cell in cells], level, slots)
    average, maximum, minimum, count = (decoded[name].T.copy() for name in ("average", "maximum", "minimum", "count"))
    return Stats(average, maximum, minimum, count)


def rollup_save(kind: SubjectKind, level: int, *, hour: int, stats: dict[int, Stats]) -> None:
    """Write the rows that begin at `hour`, whole, over what was there."""
    if not stats:
        return
    encoded: list[list[Cell]] = [encode_cells(one, level) for one in stats.values()]
    names = ", ".join(kind.columns)
    arrays = ", ".join(["%s::bytea[]"] * len(kind.columns))
    updates = ", ".join(f"{name} = excluded.{name}" for name in kind.columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {kind.rollup_table(level)} (subject_id, hour, {names})"  # noqa: S608 - names of the catalogue
            f" SELECT t.subject_id, %s, {', '.join(f't.{name}' for name in kind.columns)}"
            f" FROM unnest(%s::int[], {arrays}) AS t (subject_id, {names})"
            f" ON CONFLICT (subject_id, hour) DO UPDATE SET {updates}",
            [hour, list(stats), *(list(column) for column in zip(*encoded, strict=True))],
        )


def merged(old: Stats | None, new: Stats, *, first_slot: int, end_slot: int) -> Stats:
    """Return `old` with the slots from first_slot to end_slot taken from `new`, which covers the whole row."""
    if old is None:
        old = empty(*new.count.shape)
    for name in ("average", "maximum", "minimum", "count"):
        getattr(old, name)[first_slot:end_slot] = getattr(new, name)[first_slot:end_slot]
    return old
