"""Closing hours and days: sealing what is over, and doing again what late samples touched."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Final

import numpy as np
from django.db import connection, transaction

from monitoring.models import DirtyHour, SealedDay, SealedHour
from monitoring.store import sealed
from monitoring.store.codec import Block, merge_blocks
from monitoring.store.progress import CLOSED, progress_of, progress_set
from monitoring.store.raw import raw_rows
from monitoring.store.rolling import OPEN_LEVELS, REREAD_MS, roll_closed, roll_range
from monitoring.store.tables import DAY_MS, HOUR_MS, HOURS_PER_DAY, SubjectKind

CLOSE_AFTER_MS: Final = REREAD_MS  # everything that ingest does not mark as late has been committed by then
SUBJECTS_AT_ONCE: Final = 200
DIRTY_AT_ONCE: Final = 5_000


def close_hours(kind: SubjectKind, *, now_ms: int) -> int:
    """Seal every hour that is over, each in a transaction of its own; returns how many."""
    start_ms = progress_of(kind, CLOSED)
    if start_ms is None:
        start_ms = _first_hour_ms(kind, now_ms)
    closed = 0
    for hour_ms in range(start_ms, now_ms - CLOSE_AFTER_MS - HOUR_MS + 1, HOUR_MS):
        with transaction.atomic():
            remake_hour(kind, hour_ms // HOUR_MS, subject_ids=None)
            progress_set(kind, CLOSED, hour_ms + HOUR_MS)
        closed += 1
    return closed


def _first_hour_ms(kind: SubjectKind, now_ms: int) -> int:
    """Return the hour of the oldest sample there is, or the present hour."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT min(at) FROM {kind.samples.name}")  # noqa: S608 - a name of ours
        (oldest,) = cursor.fetchone()
    oldest_ms = now_ms if oldest is None else int(oldest.timestamp() * 1000)
    return oldest_ms // HOUR_MS * HOUR_MS


def remake_hour(kind: SubjectKind, hour: int, *, subject_ids: Collection[int] | None) -> None:
    """Seal one hour and write its rollups, from what was sealed of it before and all its samples (None: of all subjects)."""
    start_ms, end_ms = hour * HOUR_MS, (hour + 1) * HOUR_MS
    for some in _portions(_subjects_in(kind, start_ms, end_ms) if subject_ids is None else sorted(subject_ids)):
        old = sealed.samples_between(
            kind, subject_ids=some, start_ms=start_ms, end_ms=end_ms, metrics=range(len(kind.metrics))
        )
        new = _raw_blocks(kind, some, start_ms, end_ms)
        blocks = {
            subject: merge_blocks(old.get(subject, sealed.nothing(kind)), block) for subject, block in new.items()
        }
        if blocks:
            sealed.hours_save(kind, hour=hour, blocks=blocks)
            roll_closed(kind, hour=hour, blocks=blocks)


def _subjects_in(kind: SubjectKind, start_ms: int, end_ms: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT subject_id FROM {kind.samples.name} WHERE at >= %s AND at < %s ORDER BY subject_id",  # noqa: S608
            [datetime.fromtimestamp(start_ms / 1000, tz=UTC), datetime.fromtimestamp(end_ms / 1000, tz=UTC)],
        )
        return [subject for (subject,) in cursor.fetchall()]


def _portions(subject_ids: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(subject_ids), SUBJECTS_AT_ONCE):
        yield subject_ids[first : first + SUBJECTS_AT_ONCE]


def _raw_blocks(kind: SubjectKind, subject_ids: list[int], start_ms: int, end_ms: int) -> dict[int, Block]:
    rows = raw_rows(
        kind, columns=kind.columns, subject_ids=subject_ids, start_ms=start_ms, end_ms=end_ms, with_reasons=True
    )
    order = np.lexsort((rows.at_ms, rows.subjects))
    subjects, at_ms, values, reasons = rows.subjects[order], rows.at_ms[order], rows.values[order], rows.reasons[order]
    found, starts = np.unique(subjects, return_index=True)
    ends = [*starts[1:].tolist(), len(subjects)]
    return {
        subject: Block(at_ms[first:end], values[first:end], reasons[first:end])
        for subject, first, end in zip(found.tolist(), starts.tolist(), ends, strict=True)
    }


def redo_dirty(kind: SubjectKind) -> int:
    """Redo the hours that got late samples, for the subjects that got them; returns how many (subject, hour) were redone.

    A mark is committed with its samples, so whoever sees it sees them. Marks are removed with what they led to.
    """
    with transaction.atomic():
        marks = (
            DirtyHour.objects.filter(kind=kind.code)
            .order_by("pk")
            .values_list("pk", "subject_id", "hour")[:DIRTY_AT_ONCE]
        )
        numbers: list[int] = []
        by_hour: defaultdict[int, set[int]] = defaultdict(set)
        for number, subject, hour in marks:
            numbers.append(number)
            by_hour[hour].add(subject)
        closed_ms = progress_of(kind, CLOSED) or 0
        for hour, subjects in sorted(by_hour.items()):
            if (hour + 1) * HOUR_MS <= closed_ms:
                remake_hour(kind, hour, subject_ids=subjects)
            else:
                _redo_open(kind, hour, subjects)
        DirtyHour.objects.filter(pk__in=numbers).delete()
    return sum(len(subjects) for subjects in by_hour.values())


def _redo_open(kind: SubjectKind, hour: int, subject_ids: Collection[int]) -> None:
    """Redo an hour that is not closed, as far as each level has come."""
    for level in OPEN_LEVELS:
        end_ms = min(progress_of(kind, str(level)) or 0, (hour + 1) * HOUR_MS)
        if end_ms > hour * HOUR_MS:
            roll_range(kind, level, start_ms=hour * HOUR_MS, end_ms=end_ms, subject_ids=subject_ids)


def fold_days(kind: SubjectKind) -> int:
    """Turn the hours of days that are closed into day blocks, some subjects at a time; returns how many (subject, day).

    Hours that late samples brought after their day was folded are folded into it again.
    """
    end_hour = (progress_of(kind, CLOSED) or 0) // DAY_MS * HOURS_PER_DAY
    hours = SealedHour.objects.filter(kind=kind.code, hour__lt=end_hour)
    by_day: defaultdict[int, set[int]] = defaultdict(set)
    for subject, hour in hours.values_list("subject_id", "hour"):
        by_day[hour // HOURS_PER_DAY].add(subject)
    for day, subjects in sorted(by_day.items()):
        for some in _portions(sorted(subjects)):
            with transaction.atomic():
                _fold(kind, day, some)
    return sum(len(subjects) for subjects in by_day.values())


def _fold(kind: SubjectKind, day: int, subject_ids: list[int]) -> None:
    everything = range(len(kind.metrics))
    blocks = sealed.samples_between(
        kind, subject_ids=subject_ids, start_ms=day * DAY_MS, end_ms=(day + 1) * DAY_MS, metrics=everything
    )
    for subject, block in blocks.items():
        sealed.day_save(kind, subject_id=subject, day=day, block=block)
    first_hour = day * HOURS_PER_DAY
    SealedHour.objects.filter(
        kind=kind.code, subject_id__in=subject_ids, hour__gte=first_hour, hour__lt=first_hour + HOURS_PER_DAY
    ).delete()


def forget_sealed(kind: SubjectKind, *, before_ms: int) -> int:
    """Delete sealed hours and days that ended before; returns how many rows."""
    hours, _ = SealedHour.objects.filter(kind=kind.code, hour__lt=before_ms // HOUR_MS).delete()
    days, _ = SealedDay.objects.filter(kind=kind.code, day__lt=before_ms // DAY_MS).delete()
    return hours + days
