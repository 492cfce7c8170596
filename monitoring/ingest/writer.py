"""The one writer of a process: reports that arrive together share one COPY and one commit.

Nothing waits when idle: a report that arrives alone is committed at once, and what arrives meanwhile makes the next group.
Two groups can be under way, each over a connection of its own and never with the same agent in both.
A batch's future is set only after the commit. While Postgres is away every report is answered 503 and the connection is
tried again with back-off. If a group fails for another reason, its batches are stored one by one, so that only the one at
fault is refused.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
import psycopg
import structlog
from psycopg import errors

from monitoring.ingest import statements
from monitoring.ingest.batch import Batch, Samples, assemble
from monitoring.ingest.growths import growths_copy
from monitoring.ingest.links import Connect, Lane, Links
from monitoring.ingest.refusals import Refused, unavailable
from monitoring.store.tables import ENGINE, GPU, HOST

MAX_GROUP_ROWS: Final = 20_000
MAX_GROUP_REPORTS: Final = 500
LANES: Final = 2  # so that Postgres stores one group while the next is prepared
MAX_WAITING: Final = 2_000
COMMIT_SECONDS: Final = (
    30.0  # with LATE_AFTER_MS less than what rollups re-read: no commit comes after they have looked
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group stored: which of its batches were new, and the samples of all of them."""

    stored: list[bool]
    gpu: Samples
    host: Samples
    engine: Samples


class Writer:
    """Stores batches; `store` returns whether a batch was stored now (False: it already had been)."""

    def __init__(
        self,
        *,
        connect: Connect,
        retention_ms: float,
        on_commit: Callable[[list[Batch], Committed], None],
        on_no_partition: Callable[[], None],
    ) -> None:
        self._links = Links(connect)
        self._retention_ms = retention_ms
        self._on_commit = on_commit
        self._on_no_partition = on_no_partition
        self._waiting: deque[Batch] = deque()
        self._under_way: set[int] = set()  # the agents whose batches are being stored
        self._wake = asyncio.Event()
        self._lanes = [Lane() for _ in range(LANES)]
        self._tasks = [asyncio.create_task(self._run(lane)) for lane in self._lanes]
        self.commits = 0

    async def store(self, batch: Batch) -> bool:
        """Wait until the batch is committed. Raises Refused (503) when it is not, and the agent should try again."""
        if len(self._waiting) >= MAX_WAITING or self._tasks[0].done():
            raise unavailable("The panel is busy storing; try again.", retry_after_seconds=1.0)
        self._waiting.append(batch)
        self._wake.set()
        return await batch.done

    async def close(self) -> None:
        """Store what waits, then disconnect."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while group := self._take_group():
            await self._store_group(group, self._lanes[0])
        for lane in self._lanes:
            await lane.close()

    async def _run(self, lane: Lane) -> None:
        while True:
            await self._wake.wait()
            # A second group is begun beside the first when it is as large: many small commits cost more than they save.
            group = self._take_group() if len(self._waiting) >= len(self._under_way) else []
            if not group:
                self._wake.clear()
                continue
            agents = {batch.identity.agent_id for batch in group}
            self._under_way |= agents
            work = asyncio.ensure_future(self._store_group(group, lane))
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                await work  # closing: a commit under way is finished, its agents get their answers
                raise
            finally:
                self._under_way -= agents
                self._wake.set()

    def _take_group(self) -> list[Batch]:
        """Take what waits, at most one batch of each agent; the others come in the next group, in their order."""
        group: list[Batch] = []
        later: list[Batch] = []
        agents = set(self._under_way)
        rows = 0
        while self._waiting and rows < MAX_GROUP_ROWS and len(group) < MAX_GROUP_REPORTS:
            batch = self._waiting.popleft()
            if batch.done.done():  # its client went away
                continue
            if batch.identity.agent_id in agents:
                later.append(batch)
                continue
            agents.add(batch.identity.agent_id)
            rows += batch.rows
            group.append(batch)
        self._waiting.extendleft(reversed(later))
        return sorted(group, key=lambda batch: batch.identity.agent_id)

    async def _store_group(self, group: list[Batch], lane: Lane, *, is_retry: bool = False) -> None:
        """Store a group; afterwards every batch in it has its answer."""
        was_connected = lane.is_connected
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                committed = await self._transact(group, lane)
            self._answer(group, committed)
        except psycopg.Error as error:
            await self._recover(group, lane, error, is_retry=is_retry or not was_connected)
        except Exception:  # the writer must outlive any batch; logged, and its agents are told
            log.exception("ingest.writer_failed", reports=len(group))
            await lane.close()
            _fail(group, unavailable("The panel failed to store the batch."))

    async def _recover(self, group: list[Batch], lane: Lane, error: psycopg.Error, *, is_retry: bool) -> None:
        """Answer a group that failed. Trying again is safe even when the commit's outcome is unknown: seq tells."""
        if not lane.is_connected:
            if not is_retry:  # an old connection broke, perhaps long ago: a new one may do
                await self._store_group(group, lane, is_retry=True)
                return
            self._links.back_off(error)
            _fail(group, unavailable("The database is not available; the batch was not stored."))
        elif len(group) > 1:
            log.warning("ingest.group_failed", reports=len(group), error=str(error), sqlstate=error.sqlstate)
            for batch in group:
                await self._store_group([batch], lane)
        else:
            _fail(group, self._refusal(group[0], error))

    async def _transact(self, group: list[Batch], lane: Lane) -> Committed:
        """Store the batches that are new, in one transaction; what it returns is on disk."""
        link = await self._links.of(lane)
        now_ms = time.time() * 1000
        oldest_ms = now_ms - self._retention_ms
        gpu, host, engine = (assemble(kind, group, oldest_ms=oldest_ms) for kind in (GPU, HOST, ENGINE))
        stored = np.zeros(len(group), dtype=np.bool_)
        try:
            await link.send_begin(statements.advance_parameters(group, gpu, host, engine, now_ms=now_ms))
            copies = _copies(gpu, host, engine)  # packed while Postgres advances the streams
            stored[[int.from_bytes(number, "big") - 1 for number in await link.begun()]] = True
            if not stored.all():
                copies = _copies(gpu.of(stored), host.of(stored), engine.of(stored))
            await link.commit(copies + growths_copy(compress(group, stored), oldest_ms=oldest_ms))
        except psycopg.Error:
            if not link.closed:
                await link.roll_back()
            raise
        return Committed(stored.tolist(), gpu, host, engine)

    def _answer(self, group: list[Batch], committed: Committed) -> None:
        self.commits += 1
        for batch, is_stored in zip(group, committed.stored, strict=True):
            if not batch.done.done():
                batch.done.set_result(is_stored)
        self._on_commit(group, committed)

    def _refusal(self, batch: Batch, error: psycopg.Error) -> Refused:
        """Say what one batch's failure means to its agent."""
        log.error("ingest.batch_failed", server_id=batch.identity.server_id, error=str(error), sqlstate=error.sqlstate)
        if isinstance(error, errors.CheckViolation):  # how Postgres says "no partition of relation found for row"
            self._on_no_partition()
        elif isinstance(error, errors.ForeignKeyViolation):
            return Refused(401, "token_refused", "This agent is not registered any more; join again.")
        elif isinstance(error, psycopg.DataError):
            return Refused(422, "cannot_store", "The database refuses the values of this batch.")
        return unavailable("The panel could not store the batch; try again.")


def _copies(*sets: Samples) -> list[tuple[str, bytes]]:
    """Return the COPY of each set that has samples, with its stream."""
    return [
        (statements.copy_statement(samples.kind), statements.copy_stream(samples))
        for samples in sets
        if len(samples.subjects)
    ]


def _fail(group: list[Batch], refusal: Refused) -> None:
    for batch in group:
        if not batch.done.done():
            batch.done.set_exception(refusal)
