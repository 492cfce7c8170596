"""Keeping rollups up with the samples: provisional rows of the open hours, final rows of an hour that closes.

The rows of an open hour are redone from a little before where they ended, so that samples which were being committed then
are found; ingest marks the hour of anything later as dirty. When an hour closes all its rows are made anew from all its
samples, whatever the provisional ones said.
"""

from collections.abc import Collection
from typing import Final

import numpy as np

from monitoring.store.codec import Block
from monitoring.store.grid import slots_per_row
from monitoring.store.progress import CLOSED, progress_of, progress_set
from monitoring.store.raw import Rows, raw_rows
from monitoring.store.rollup import Stats, combine, roll
from monitoring.store.rollup_rows import merged, rollup_load, rollup_save
from monitoring.store.tables import FIVE_MINUTES, HOUR, HOUR_MS, HOURS_PER_DAY, MINUTE, SubjectKind

REREAD_MS: Final = (
    150_000  # ingest.statements.LATE_AFTER_MS + ingest.writer.COMMIT_SECONDS + half a minute of clocks apart
)
SETTLE_MS: Final = 10_000  # the newest seconds are still arriving; charts read them from the samples
OPEN_LEVELS: Final = (MINUTE, FIVE_MINUTES)


def roll_open(kind: SubjectKind, level: int, *, now_ms: int) -> int:
    """Bring the rows of one level up to now, for all subjects; returns how many rows were written.

    Reads from the last run's end less `REREAD_MS`, never before the last closed hour. Run inside a transaction.
    """
    until_ms = progress_of(kind, str(level)) or 0
    closed_ms = progress_of(kind, CLOSED) or (now_ms // HOUR_MS - 1) * HOUR_MS
    slot_ms = level * 1000
    start_ms = max(closed_ms, (until_ms - REREAD_MS) // slot_ms * slot_ms)
    end_ms = now_ms - SETTLE_MS
    if end_ms <= max(start_ms, until_ms):
        return 0
    written = roll_range(kind, level, start_ms=start_ms, end_ms=end_ms)
    progress_set(kind, str(level), end_ms)
    return written


def roll_range(
    kind: SubjectKind, level: int, *, start_ms: int, end_ms: int, subject_ids: Collection[int] | None = None
) -> int:
    """Redo the slots from `start_ms` (on a slot's edge) to `end_ms` from the samples; returns how many rows were written."""
    written = 0
    for hour in range(start_ms // HOUR_MS, -(-end_ms // HOUR_MS)):
        first_ms, last_ms = max(start_ms, hour * HOUR_MS), min(end_ms, (hour + 1) * HOUR_MS)
        rows = raw_rows(kind, columns=kind.columns, start_ms=first_ms, end_ms=last_ms, subject_ids=subject_ids)
        fresh = stats_by_subject(rows, level, hour=hour)
        old = rollup_load(kind, level, subject_ids=list(fresh), hour=hour)
        slot_ms = level * 1000
        first_slot, end_slot = (first_ms - hour * HOUR_MS) // slot_ms, -(-(last_ms - hour * HOUR_MS) // slot_ms)
        stats = {
            subject: merged(old.get(subject), one, first_slot=first_slot, end_slot=end_slot)
            for subject, one in fresh.items()
        }
        rollup_save(kind, level, hour=hour, stats=stats)
        written += len(stats)
    return written


def stats_by_subject(rows: Rows, level: int, *, hour: int) -> dict[int, Stats]:
    """Return the slots of one hour for each subject that has samples in it."""
    subjects, places = np.unique(rows.subjects, return_inverse=True)
    slots = slots_per_row(level)
    flat = places * slots + (rows.at_ms - hour * HOUR_MS) // (level * 1000)
    stats = roll(flat, rows.values, total=len(subjects) * slots)
    return {
        subject: Stats(*(array[place * slots : (place + 1) * slots] for array in _arrays(stats)))
        for place, subject in enumerate(subjects.tolist())
    }


def _arrays(stats: Stats) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return stats.average, stats.maximum, stats.minimum, stats.count


def roll_closed(kind: SubjectKind, *, hour: int, blocks: dict[int, Block]) -> None:
    """Write the final rows of one hour on every level from all its samples."""
    minutes = {subject: _minutes(block, hour) for subject, block in blocks.items()}
    fives = {subject: combine(one, FIVE_MINUTES // MINUTE) for subject, one in minutes.items()}
    rollup_save(kind, MINUTE, hour=hour, stats=minutes)
    rollup_save(kind, FIVE_MINUTES, hour=hour, stats=fives)
    first_of_day = hour // HOURS_PER_DAY * HOURS_PER_DAY
    days = rollup_load(kind, HOUR, subject_ids=list(blocks), hour=first_of_day)
    slot = hour - first_of_day
    for subject, one in fives.items():
        of_hour = combine(one, HOUR // FIVE_MINUTES)
        whole = Stats(*(np.repeat(array, HOURS_PER_DAY, axis=0) for array in _arrays(of_hour)))
        days[subject] = merged(days.get(subject), whole, first_slot=slot, end_slot=slot + 1)
    rollup_save(kind, HOUR, hour=first_of_day, stats=days)


def _minutes(block: Block, hour: int) -> Stats:
    slots = ((block.at_ms - hour * HOUR_MS) // (MINUTE * 1000)).astype(np.intp)
    return roll(slots, block.values, total=slots_per_row(MINUTE))
