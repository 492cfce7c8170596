"""Daily range partitions: made ahead, dropped by retention, counted for self-health.

Making attaches a finished table, which lets readers and writers go on; dropping detaches concurrently first, so that no
statement waits behind it. Both survive being killed half-way: the next run finishes what is left. Neither may run inside
a transaction, and each table is handled on its own, so that trouble with one never stops the others.
"""

import re
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_TIMEOUT: Final = "2s"
ADVISORY_CLASS: Final = 0x0FD1  # first half of the advisory lock's key; the second is the table's oid
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DailyTable:
    """A table partitioned by range of a timestamptz column, one partition for each UTC day."""

    name: str

    def partition(self, day: date) -> str:
        """Return the partition's name, `<table>_p20261231`."""
        return f"{self.name}_p{day:%Y%m%d}"


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What exists of one table. ahead: whole days after `today` that have a partition, without a hole."""

    table: str
    oldest: date | None
    newest: date | None
    count: int
    ahead: int
    size_bytes: int


class PartitionsBusy(Exception):  # noqa: N818 - a state, not a fault
    """Another process maintains this table's partitions right now."""


@contextmanager
def _exclusive(table: DailyTable) -> "Iterator[None]":
    """Hold the table's advisory lock. Raises PartitionsBusy when another session does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s::regclass::oid::int)", [ADVISORY_CLASS, table.name])
        if not cursor.fetchone()[0]:
            raise PartitionsBusy(table.name)
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT])
        try:
            yield
        finally:
            if not connection.needs_rollback:
                cursor.execute("SELECT set_config('lock_timeout', '0', false)")
                cursor.execute("SELECT pg_advisory_unlock(%s, %s::regclass::oid::int)", [ADVISORY_CLASS, table.name])


def partition_days(table: DailyTable) -> list[date]:
    """Return the days that have an attached partition, oldest first."""
    return sorted(day for day, is_pending in _attached(table).items() if not is_pending)


def _attached(table: DailyTable) -> dict[date, bool]:
    """Return the day of each partition, and whether its detaching was begun and not finished."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, i.inhdetachpending FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = %s::regclass",
            [table.name],
        )
        rows = cursor.fetchall()
    pattern = re.compile(re.escape(table.name) + r"_p(\d{8})")
    found = ((pattern.fullmatch(name), is_pending) for name, is_pending in rows)
    return {_day_of(match[1]): is_pending for match, is_pending in found if match}


def _day_of(digits: str) -> date:
    return datetime.strptime(digits, "%Y%m%d").replace(tzinfo=UTC).date()


def partitions_make(table: DailyTable, *, first: date, last: date) -> list[date]:
    """Make the missing partitions of the days from `first` to `last`; return those made.

    Raises PartitionsBusy, or the database's error for the day that failed (earlier days stay made).
    """
    wanted = [first + _DAY * offset for offset in range((last - first).days + 1)]
    existing = _attached(table)
    missing = [day for day in wanted if day not in existing]
    if not missing:
        return []
    with _exclusive(table):
        for day in missing:
            _make(table, day)
    return missing


def _make(table: DailyTable, day: date) -> None:
    """Build the partition beside its parent and attach it: that takes no lock which a writer would wait for."""
    names = {"parent": sql.Identifier(table.name), "child": sql.Identifier(table.partition(day))}
    bounds = {"low": sql.Literal(f"{day} 00:00:00+00"), "high": sql.Literal(f"{day + _DAY} 00:00:00+00")}
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in (
            "CREATE TABLE IF NOT EXISTS {child} (LIKE {parent} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)",
            "ALTER TABLE {parent} ATTACH PARTITION {child} FOR VALUES FROM ({low}) TO ({high})",
        ):
            cursor.execute(sql.SQL(statement).format(**names, **bounds))


def partitions_drop(table: DailyTable, *, before: date) -> list[date]:
    """Drop the partitions of the days before `before`, and finish drops that were interrupted; return the days dropped.

    Must run outside any transaction. Raises PartitionsBusy, or the database's error for the first that failed.
    """
    attached = _attached(table)
    due = sorted(day for day, is_pending in attached.items() if day < before or is_pending)
    orphans = _orphans(table)
    if not due and not orphans:
        return []
    with _exclusive(table):
        for day in due:
            _detach(table, day, is_pending=attached[day])
        for day in sorted({*due, *orphans}):
            with connection.cursor() as cursor:
                cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(table.partition(day))))
    return sorted({*due, *orphans})


def _detach(table: DailyTable, day: date, *, is_pending: bool) -> None:
    mode = sql.SQL("FINALIZE" if is_pending else "CONCURRENTLY")
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("ALTER TABLE {} DETACH PARTITION {} {}").format(
                sql.Identifier(table.name), sql.Identifier(table.partition(day)), mode
            )
        )


def _orphans(table: DailyTable) -> list[date]:
    """Return the days whose table was detached but not dropped when a run was killed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT right(c.relname, 8) FROM pg_class c WHERE c.relkind = 'r' AND NOT c.relispartition"
            " AND c.relname ~ %s AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = %s::regclass)",
            [f"^{re.escape(table.name)}_p\\d{{8}}$", table.name],
        )
        return [_day_of(digits) for (digits,) in cursor.fetchall()]


def partition_state(table: DailyTable, *, today: date) -> PartitionState:
    """Return what exists of the table, for self-health and the alert about partitions made ahead."""
    days = partition_days(table)
    known = set(days)
    ahead = 0
    while today + _DAY * (ahead + 1) in known:
        ahead += 1
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint FROM pg_inherits WHERE inhparent = %s::regclass",
            [table.name],
        )
        size_bytes: int = cursor.fetchone()[0]
    return PartitionState(
        table=table.name,
        oldest=days[0] if days else None,
        newest=days[-1] if days else None,
        count=len(days),
        ahead=ahead,
        size_bytes=size_bytes,
    )
