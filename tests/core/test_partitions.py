"""Partitions by day: made ahead, dropped whole, finished after an interruption, and never a reason to stop the others."""

from datetime import date, timedelta

import psycopg
import pytest
from django.db import OperationalError, ProgrammingError, connection

from panel.core.partitions import (
    DailyTable,
    PartitionsBusy,
    partition_days,
    partition_state,
    partitions_drop,
    partitions_make,
)

TABLE = DailyTable("reading")
TODAY = date(2026, 3, 1)


def day(offset):
    return TODAY + timedelta(days=offset)


@pytest.fixture
def reading(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE reading (at timestamptz NOT NULL, value real) PARTITION BY RANGE (at)")
        cursor.execute("CREATE INDEX reading_at ON reading USING brin (at)")
        yield cursor
        cursor.execute("DROP TABLE IF EXISTS reading CASCADE")
        for offset in range(-5, 8):
            cursor.execute(f"DROP TABLE IF EXISTS {TABLE.partition(day(offset))}")


@pytest.fixture
def other_session():
    parameters = {
        name: value
        for name, value in connection.get_connection_params().items()
        if name not in {"cursor_factory", "context", "prepare_threshold"}
    }
    with psycopg.connect(**parameters, autocommit=True) as session:
        yield session


def test_missing_days_are_made_once(reading):
    assert partitions_make(TABLE, first=day(-1), last=day(2)) == [day(-1), day(0), day(1), day(2)]
    assert partitions_make(TABLE, first=day(0), last=day(3)) == [day(3)]
    assert partitions_make(TABLE, first=day(0), last=day(3)) == []
    reading.execute("INSERT INTO reading VALUES ('2026-03-01 00:00:00+00', 1), ('2026-03-01 23:59:59.999+00', 2)")
    reading.execute(f"SELECT count(*) FROM {TABLE.partition(TODAY)}")
    assert reading.fetchone() == (2,)
    reading.execute("SELECT count(*) FROM pg_indexes WHERE tablename = %s", [TABLE.partition(TODAY)])
    assert reading.fetchone() == (1,)


def test_state_counts_the_days_ahead_without_a_hole(reading):
    partitions_make(TABLE, first=day(-2), last=day(4))
    reading.execute(f"DROP TABLE {TABLE.partition(day(3))}")
    state = partition_state(TABLE, today=TODAY)
    assert (state.oldest, state.newest, state.count, state.ahead) == (day(-2), day(4), 6, 2)
    assert state.size_bytes > 0
    assert partition_state(TABLE, today=day(9)).ahead == 0


def test_old_days_are_dropped_whole_and_no_other(reading):
    partitions_make(TABLE, first=day(-3), last=day(1))
    reading.execute("INSERT INTO reading VALUES ('2026-02-28 12:00+00', 1)")
    assert partitions_drop(TABLE, before=day(-1)) == [day(-3), day(-2)]
    assert partition_days(TABLE) == [day(-1), day(0), day(1)]
    reading.execute("SELECT count(*) FROM reading")
    assert reading.fetchone() == (1,)


def test_writers_and_readers_go_on_while_a_day_is_made(reading, other_session):
    partitions_make(TABLE, first=day(0), last=day(0))
    with other_session.transaction():
        other_session.execute("INSERT INTO reading VALUES ('2026-03-01 12:00+00', 1)")
        assert partitions_make(TABLE, first=day(1), last=day(1)) == [day(1)]


def test_a_drop_that_was_interrupted_is_finished_by_the_next(reading, other_session):
    partitions_make(TABLE, first=day(-2), last=day(0))
    reading.execute(f"ALTER TABLE reading DETACH PARTITION {TABLE.partition(day(-2))}")  # killed before its DROP
    with other_session.transaction():  # a reader that holds the parent: detaching cannot finish
        other_session.execute("SELECT count(*) FROM reading")
        reading.execute("SET statement_timeout = '300ms'")
        with pytest.raises(OperationalError):
            partitions_drop(TABLE, before=day(0))
        reading.execute("SET statement_timeout = 0")
    assert partition_days(TABLE) == [day(0)]
    assert partitions_drop(TABLE, before=day(0)) == [day(-2), day(-1)]
    reading.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'reading_p%%' AND relkind = 'r'")
    assert reading.fetchone() == (1,)


def test_two_at_once_do_not_get_into_each_others_way(reading, other_session):
    other_session.execute("SELECT pg_advisory_lock(%s, 'reading'::regclass::oid::int)", [0x0FD1])
    with pytest.raises(PartitionsBusy):
        partitions_make(TABLE, first=day(0), last=day(0))
    other_session.execute("SELECT pg_advisory_unlock_all()")
    assert partitions_make(TABLE, first=day(0), last=day(0)) == [day(0)]


def test_a_table_that_does_not_exist_is_an_error_of_the_database(transactional_db):
    with pytest.raises(ProgrammingError):
        partitions_make(DailyTable("no_such_table"), first=day(0), last=day(0))
