"""Series out of all levels: rollups as far as they go, samples for the rest, gathered over one grid of buckets."""

from collections.abc import Collection
from typing import Final

import numpy as np

from monitoring.store.buckets import LONGEST_INTERVAL_MS, Buckets
from monitoring.store.grid import RAW, Grid
from monitoring.store.progress import CLOSED, progress_of
from monitoring.store.raw import Rows, raw_rows
from monitoring.store.rollup_rows import rollup_cells
from monitoring.store.sealed import samples_between
from monitoring.store.tables import FIVE_MINUTES, HOUR, SubjectKind

# Where the rows of a level end, the next goes on, and after the last the samples. Hours are rolled up when they close.
_CHAINS: Final = {HOUR: (HOUR, FIVE_MINUTES)}


def read_series(kind: SubjectKind, *, subject_ids: Collection[int], columns: list[str], grid: Grid) -> list[Buckets]:
    """Return the buckets of each column, for all subjects. Columns must be names of the catalogue.

    At most four queries, whatever the range and however many subjects.
    """
    gathered = [Buckets(grid, subject_ids) for _ in columns]
    if grid.level == RAW:
        _add_samples(gathered, _all_samples(kind, subject_ids, columns, grid))
        return gathered
    start_ms = grid.first_ms
    for level in _CHAINS.get(grid.level, (grid.level,)):
        if start_ms < grid.end_ms:
            start_ms = _add_rollups(gathered, kind, subject_ids, columns, level=level, start_ms=start_ms)
    if start_ms < grid.end_ms:
        rows = raw_rows(kind, columns=columns, subject_ids=subject_ids, start_ms=start_ms, end_ms=grid.end_ms)
        _add_samples(gathered, rows)
    return gathered


def _add_rollups(
    gathered: list[Buckets],
    kind: SubjectKind,
    subject_ids: Collection[int],
    columns: list[str],
    *,
    level: int,
    start_ms: int,
) -> int:
    """Add the rows of one level from `start_ms` on; returns where they end."""
    grid = gathered[0].grid
    found = rollup_cells(
        kind,
        level,
        columns=columns,
        subject_ids=subject_ids,
        start_ms=start_ms,
        end_ms=grid.end_ms,
        until_step=CLOSED if level == HOUR else str(level),
    )
    for buckets, cells in zip(gathered, found.cells, strict=True):
        buckets.add_cells(found.subjects, found.starts_ms, cells, level, start_ms=start_ms)
    return max(start_ms, found.until_ms)


def _all_samples(kind: SubjectKind, subject_ids: Collection[int], columns: list[str], grid: Grid) -> Rows:
    """Return every sample of the grid's range: sealed ones of closed hours, then the rows of the open ones.

    Reads a little more on both sides, for the sample that stands until the first one, and until the one after the last.
    """
    closed_ms = progress_of(kind, CLOSED) or 0
    start_ms, end_ms = grid.first_ms - LONGEST_INTERVAL_MS, grid.end_ms + LONGEST_INTERVAL_MS
    rows = raw_rows(kind, columns=columns, subject_ids=subject_ids, start_ms=max(start_ms, closed_ms), end_ms=end_ms)
    if start_ms >= closed_ms:
        return rows
    metrics = [kind.columns.index(column) for column in columns]
    sealed = samples_between(
        kind, subject_ids=subject_ids, start_ms=start_ms, end_ms=min(end_ms, closed_ms), metrics=metrics
    )
    parts = [(subject, block) for subject, block in sealed.items() if len(block.at_ms)]
    lengths = [len(block.at_ms) for _, block in parts]
    subjects = np.repeat(np.array([subject for subject, _ in parts], dtype=np.int32), lengths)
    return Rows(
        np.concatenate([subjects, rows.subjects]),
        np.concatenate([*(block.at_ms for _, block in parts), rows.at_ms]),
        np.concatenate([*(block.values[:, metrics] for _, block in parts), rows.values]),
        rows.reasons,
    )


def _add_samples(gathered: list[Buckets], rows: Rows) -> None:
    subjects, at_ms, values = rows.subjects, rows.at_ms, rows.values
    if gathered[0].grid.level == RAW:
        order = np.lexsort((at_ms, subjects))
        subjects, at_ms, values = subjects[order], at_ms[order], values[order]
    for column, buckets in enumerate(gathered):
        buckets.add_samples(subjects, at_ms, values[:, column])
