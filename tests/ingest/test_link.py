"""The writer's connection: big streams go through, errors leave it usable, a lost one says so."""

import asyncio

import psycopg
import pytest
from django.db import connection
from psycopg import errors

from monitoring.ingest.database import connect
from monitoring.ingest.link import Link
from tests.waiting import eventually

STATEMENT = "INSERT INTO linked (number) SELECT * FROM unnest($1::int[]) RETURNING number"
COPY = "COPY linked (number) FROM STDIN (FORMAT BINARY)"
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)


def array(*numbers):
    head = b"".join(number.to_bytes(4, "big") for number in (1, 0, 23, len(numbers), 1))
    return head + b"".join((4).to_bytes(4, "big") + number.to_bytes(4, "big") for number in numbers)


def stream(numbers):
    rows = b"".join(b"\0\1\0\0\0\4" + number.to_bytes(4, "big") for number in numbers)
    return HEADER + rows + b"\xff\xff"


@pytest.fixture
def table(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE linked (number int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED CHECK (number < 900000))"
        )
        yield
        cursor.execute("DROP TABLE linked")


def numbers():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), coalesce(sum(number), 0) FROM linked")
        return cursor.fetchone()


def with_link(use):
    async def run():
        link = Link(await connect())
        try:
            await link.prepare(STATEMENT)
            return await use(link)
        finally:
            await link.close()

    return asyncio.run(run())


async def store(link, begun, *copies):
    await link.send_begin([array(*begun)])
    answer = await link.begun()
    await link.commit([(COPY, stream(rows)) for rows in copies])
    return [int.from_bytes(number, "big") for number in answer]


def test_a_transaction_with_several_copies_is_stored(table):
    assert with_link(lambda link: store(link, [1, 2], [3], [4, 5])) == [1, 2]
    assert numbers() == (5, 15)


def test_one_without_samples_is_stored(table):
    with_link(lambda link: store(link, [1]))
    assert numbers() == (1, 1)


def test_a_stream_larger_than_every_buffer_goes_through(table):
    with_link(lambda link: store(link, [1], range(2, 800_000)))
    assert numbers()[0] == 799_999


@pytest.mark.parametrize(
    ("begun", "copied", "error"),
    [
        ([900_000], [], errors.CheckViolation),  # the statement
        ([1], [900_000], errors.CheckViolation),  # the COPY
        ([1], [1], errors.UniqueViolation),  # the commit, which finds what was put off
    ],
)
def test_an_error_stores_nothing_and_leaves_the_connection_usable(table, begun, copied, error):
    async def use(link):
        with pytest.raises(error):
            await store(link, begun, copied)
        await link.roll_back()
        assert not link.closed
        await store(link, [7], [8])

    with_link(use)
    assert numbers() == (2, 15)


def test_a_stream_that_is_no_copy_is_an_error_like_others(table):
    async def use(link):
        await link.send_begin([array(1)])
        await link.begun()
        with pytest.raises(psycopg.DataError):
            await link.commit([(COPY, b"nonsense"), (COPY, stream([2]))])
        await link.roll_back()
        await store(link, [3])

    with_link(use)
    assert numbers() == (1, 3)


def test_a_connection_that_ends_while_nobody_waits_is_closed(table):
    async def use(link):
        await asyncio.to_thread(kill, link)
        await asyncio.to_thread(eventually, lambda: link.closed)

    with_link(use)


def kill(link):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [link._pg.backend_pid])
    connection.close()


@pytest.mark.parametrize("moment", ["begin", "answer", "commit"])
def test_a_connection_that_is_lost_in_between_says_so(table, moment):
    async def use(link):
        if moment == "begin":
            await asyncio.to_thread(kill, link)
        await link.send_begin([array(1)])
        if moment == "answer":
            await asyncio.to_thread(kill, link)
        await link.begun()
        await asyncio.to_thread(kill, link)
        await link.commit([(COPY, stream(range(2, 200_000)))])

    with pytest.raises(psycopg.OperationalError):
        with_link(use)
    assert numbers() == (0, 0)
