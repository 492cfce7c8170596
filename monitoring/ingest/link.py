"""The writer's connection, driven through libpq itself: a group commit waits three times for Postgres instead of six.

psycopg's cursors wait for an answer to each step (BEGIN, the statement, COPY, its end, COMMIT), and set up their waiting
anew each time; for a group of eight reports that cost as much as everything else done with them. Here BEGIN travels with
the statement, and COMMIT with the COPY. psycopg still opens, secures and closes the connection.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

Result = pq.abc.PGresult

_STATEMENT: Final = b"fleetdeck_ingest"
_CHUNK_BYTES: Final = 262_144  # of a COPY handed to libpq at once, which copies it


class Link:
    """One connection with one prepared statement. Not for two coroutines at once."""

    def __init__(self, connection: "psycopg.AsyncConnection[Any]") -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.nonblocking = 1
        self._loop = asyncio.get_running_loop()
        self._socket = self._pg.socket
        self._waiter: asyncio.Future[None] | None = None
        self._loop.add_reader(self._socket, self._readable)

    @property
    def closed(self) -> bool:
        """Say whether the connection is gone."""
        return self._connection.closed

    async def close(self) -> None:
        """Disconnect; whatever transaction was open is rolled back."""
        self._let_go()
        await self._connection.close()

    async def prepare(self, statement: str) -> None:
        """Prepare the statement that `begin` runs, with parameters $1, $2 and so on."""
        self._pg.send_prepare(_STATEMENT, statement.encode())
        await self._flush()
        await self._drain()

    async def send_begin(self, parameters: Sequence[bytes]) -> None:
        """Begin a transaction with the prepared statement and binary parameters; `begun` is to be called next."""
        pg = self._pg
        pg.enter_pipeline_mode()
        pg.send_query_params(b"BEGIN", None)
        pg.send_query_prepared(_STATEMENT, parameters, [pq.Format.BINARY] * len(parameters), pq.Format.BINARY)
        pg.pipeline_sync()
        await self._flush()

    async def begun(self) -> list[bytes]:
        """Return the one column of what the statement answered, in binary."""
        pg = self._pg
        rows: list[bytes] = []
        error: psycopg.Error | None = None
        while (result := await self._next()) is None or result.status != pq.ExecStatus.PIPELINE_SYNC:
            if result is None:  # stands between the answers to two commands
                self._check_connection()
            elif result.status == pq.ExecStatus.FATAL_ERROR:
                error = error or error_from_result(result)
            else:
                rows += [bytes(result.get_value(row, 0) or b"") for row in range(result.ntuples)]
        pg.exit_pipeline_mode()
        if error is not None:
            raise error
        return rows

    async def commit(self, copies: Sequence[tuple[str, bytes]]) -> None:
        """Run each COPY … FROM STDIN with its stream, and commit. What was begun is on disk afterwards."""
        self._pg.send_query("; ".join([*(statement for statement, _ in copies), "COMMIT"]).encode())
        await self._flush()
        for _statement, stream in copies:
            await self._expect(pq.ExecStatus.COPY_IN)
            for chunk in _chunks(stream):
                while not self._pg.put_copy_data(chunk):
                    await self._wait_writable()
            self._pg.put_copy_end()
            await self._flush()
            await self._expect(pq.ExecStatus.COMMAND_OK)
        committed = await self._expect(pq.ExecStatus.COMMAND_OK)
        await self._drain()
        if committed.command_status != b"COMMIT":
            raise psycopg.InternalError(f"COMMIT was answered with {committed.command_status!r}.")

    async def roll_back(self) -> None:
        """End what an error left open. Raises psycopg.OperationalError when the connection is lost."""
        if self._pg.transaction_status != pq.TransactionStatus.IDLE:
            self._pg.send_query(b"ROLLBACK")
            await self._flush()
            await self._drain()

    # ---- inside

    async def _expect(self, status: int) -> Result:
        """Return the next result. Raises psycopg.Error when it is not of this status, with the exchange read to its end."""
        result = await self._next()
        if result is not None and result.status == status:
            return result
        self._check_connection()
        if result is None:
            raise psycopg.InternalError("Postgres ended its answer early.")
        error = error_from_result(result)
        await self._drain()
        raise error

    async def _drain(self) -> None:
        """Read to the end of the answers. Raises psycopg.Error for an error among them: one can come as late as that."""
        error: psycopg.Error | None = None
        while (result := await self._next()) is not None:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                error = error or error_from_result(result)
        self._check_connection()
        if error is not None:
            raise error

    def _check_connection(self) -> None:
        if self._pg.status == pq.ConnStatus.BAD:
            raise psycopg.OperationalError("the connection to Postgres is lost")

    async def _next(self) -> Result | None:
        while self._pg.is_busy():
            await self._wait_readable()
        return self._pg.get_result()

    async def _flush(self) -> None:
        while self._pg.flush():
            await self._wait_writable()

    async def _wait_readable(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        self._take_in()

    async def _wait_writable(self) -> None:
        """Wait until more can be sent; what Postgres says meanwhile is taken in, or both sides would wait."""
        self._waiter = self._loop.create_future()
        self._loop.add_writer(self._socket, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._loop.remove_writer(self._socket)
        self._take_in()

    def _take_in(self) -> None:
        """Read what has come. Raises psycopg.OperationalError when the connection is lost."""
        try:
            self._pg.consume_input()
        except psycopg.Error:
            self._let_go()
            raise

    def _let_go(self) -> None:
        """Stop watching the socket: libpq closes it with the connection, and its number soon is another's."""
        if self._socket >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket = -1

    def _readable(self) -> None:
        if self._waiter is not None:
            self._wake()
            return
        with suppress(psycopg.Error):  # nobody waits: a notice, or the end of the connection, which `closed` tells
            self._take_in()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _chunks(stream: bytes) -> Iterator[bytes]:
    """Cut what is sent into pieces."""
    if len(stream) <= _CHUNK_BYTES:
        yield stream
        return
    for start in range(0, len(stream), _CHUNK_BYTES):
        yield stream[start : start + _CHUNK_BYTES]
