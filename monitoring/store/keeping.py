"""How long the store keeps what, and the lock that lets one process at a time keep it in order."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Final

from django.db import OperationalError, connection, transaction
from psycopg import sql

from monitoring.models import DirtyHour
from monitoring.store.progress import CLOSED, progress_of
from monitoring.store.tables import DAY_MS, HOUR, HOURS_PER_DAY, ROLLUP_SECONDS, SubjectKind
from panel.core.partitions import LOCK_TIMEOUT, partition_days, partitions_drop

_ADVISORY_CLASS: Final = 0x0FD2
EMPTY_AFTER_MS: Final = 2 * 3_600_000


class StoreBusy(Exception):  # noqa: N818 - a state, not a fault
    """Another process keeps this kind's series in order right now."""


@contextmanager
def sole_keeper(kind: SubjectKind) -> Iterator[None]:
    """Hold the right to roll up, seal and fold this kind. Raises StoreBusy; a killed process gives it up at once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_ADVISORY_CLASS, kind.code])
        if not cursor.fetchone()[0]:
            raise StoreBusy(kind.name)
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_ADVISORY_CLASS, kind.code])


def forget_samples(kind: SubjectKind, *, before_ms: int) -> list[date]:
    """Drop the partitions of whole days before, but never one whose hours are not all closed: that would lose rollups.

    Must run outside a transaction. Returns the days dropped. Raises PartitionsBusy and database errors.
    """
    closed_ms = progress_of(kind, CLOSED) or 0
    return partitions_drop(kind.samples, before=_day(min(before_ms, closed_ms)))


def forget_rollups(kind: SubjectKind, *, minutes_before_ms: int, hours_before_ms: int) -> int:
    """Delete rollup rows of days that ended before; returns how many."""
    deleted = 0
    for level in ROLLUP_SECONDS:
        before_ms = hours_before_ms if level == HOUR else minutes_before_ms
        with connection.cursor() as cursor:
            cursor.execute(
                f"DELETE FROM {kind.rollup_table(level)} WHERE hour < %s",  # noqa: S608 - a name of ours
                [before_ms // DAY_MS * HOURS_PER_DAY],
            )
            deleted += cursor.rowcount
    return deleted


def empty_sealed_partitions(kind: SubjectKind, *, now_ms: int) -> list[date]:
    """Empty the partitions of days whose samples are all sealed, so that they take space once; returns the days.

    The partition stays for late samples. Its lock keeps writers out for an instant; if it is not to be had within two
    seconds, the next run tries again.
    """
    closed_ms = min(progress_of(kind, CLOSED) or 0, now_ms - EMPTY_AFTER_MS)
    return [day for day in partition_days(kind.samples) if _end_ms(day) <= closed_ms and _empty(kind, day)]


def _empty(kind: SubjectKind, day: date) -> bool:
    """Empty one partition unless it is empty or has samples that are not sealed; with it locked no more can come."""
    partition = sql.Identifier(kind.samples.partition(day))
    first_hour = _end_ms(day) // DAY_MS * HOURS_PER_DAY - HOURS_PER_DAY
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(partition))
            if not cursor.fetchone()[0]:
                return False
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
            cursor.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(partition))
            if DirtyHour.objects.filter(
                kind=kind.code, hour__gte=first_hour, hour__lt=first_hour + HOURS_PER_DAY
            ).exists():
                return False
            cursor.execute(sql.SQL("TRUNCATE {}").format(partition))
            return True
    except OperationalError:  # the lock was not to be had in time
        return False


def _day(unix_ms: int) -> date:
    return datetime.fromtimestamp(unix_ms / 1000, tz=UTC).date()


def _end_ms(day: date) -> int:
    return (day.toordinal() + 1 - date(1970, 1, 1).toordinal()) * DAY_MS
