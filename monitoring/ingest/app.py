"""The ASGI application behind `POST /api/agent/v1/report/`: small, beside Django, because it answers thousands a second.

Every 2xx means committed; every 4xx carries a `wire.Refusal` that says why; 503 means nothing was stored, try again.
"""

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

import msgspec
import structlog
from django.conf import settings
from django.db import Error as DatabaseError

from fleet.agent import wire
from fleet.services.agents import AgentIdentity
from monitoring.engines.keeping import histogram_partitions_make
from monitoring.ingest import body
from monitoring.ingest.batch import Batch
from monitoring.ingest.blocks import Block, engine_block, gpu_block, host_block
from monitoring.ingest.clock import Sending, sample_clock
from monitoring.ingest.database import connect
from monitoring.ingest.growths import growths_of
from monitoring.ingest.hearing import Hearing
from monitoring.ingest.identity import Identities, RateLimit
from monitoring.ingest.inventory import Applied, Inventories
from monitoring.ingest.owners import Owners
from monitoring.ingest.publish import Publisher
from monitoring.ingest.refusals import Refused, unavailable
from monitoring.ingest.writer import Writer
from monitoring.services import sample_partitions_make
from panel.core.clock import now
from panel.core.errors import FleetdeckError
from panel.core.threads import DjangoThreads

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_ENCODE: Final = {"msgpack": msgspec.msgpack.Encoder().encode, "json": msgspec.json.Encoder().encode}
_ANSWER_TYPES: Final = {"msgpack": b"application/msgpack", "json": b"application/json"}
_SENT_AT: Final = wire.HEADER_SENT_AT_MS.lower().encode()
_SENT_MONOTONIC: Final = wire.HEADER_SENT_MONOTONIC_MS.lower().encode()
_OS_BOOT_ID: Final = wire.HEADER_OS_BOOT_ID.lower().encode()

log = structlog.get_logger(__name__)


class Ingest:
    """What lives as long as the event loop: threads, caches, the writer, the publisher."""

    def __init__(self) -> None:
        self.threads = DjangoThreads("ingest")
        self.identities = Identities(self.threads)
        self.inventories = Inventories(self.threads)
        self.owners = Owners(self.threads)
        self.rate = RateLimit(per_second=settings.INGEST_REPORTS_PER_SECOND, burst=settings.INGEST_REPORTS_BURST)
        self.publisher = Publisher()
        self.hearing = Hearing(self.threads)
        self.retention_ms = settings.RAW_RETENTION_HOURS * 3_600_000.0
        self.writer = Writer(
            connect=connect,
            retention_ms=self.retention_ms,
            on_commit=self.publisher.committed,
            on_no_partition=self._make_partitions,
        )
        self._repairs: set[asyncio.Task[Any]] = set()

    def _make_partitions(self) -> None:
        """Make today's partition now rather than wait for the job that failed to: until then reports are answered 503."""
        if not self._repairs:
            task = asyncio.create_task(self.threads.run(_make_partitions))
            self._repairs.add(task)
            task.add_done_callback(self._repairs.discard)

    async def close(self) -> None:
        """Store what waits, then let go of everything."""
        await self.hearing.close()
        await self.writer.close()
        await self.publisher.close()
        await self.threads.close()

    async def report(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive
    ) -> tuple[wire.ReportAnswer, str]:
        """Take one report; returns the answer and its encoding. Raises Refused."""
        authorization = headers.get(b"authorization", b"")
        identity = await self.identities.identify(authorization)
        self.rate.take(identity.agent_id, time.monotonic())
        encoding = body.encoding_of(headers.get(b"content-type", b"").decode("latin-1"))
        raw = await body.read_body(receive, declared=headers.get(b"content-length", b"").decode("latin-1"))
        received_ms = time.time() * 1000
        plain = body.decompress(raw, headers.get(b"content-encoding", b"").decode("latin-1").strip().lower())
        report = body.decode_quick(plain, encoding)
        batch = self._check(identity, report, headers, received_ms, client_address(scope, headers))
        applied = self.inventories.settled(identity, report, time.monotonic())
        if applied is None:
            applied = await self._apply(batch, report, plain, encoding)
            self.identities.forget(authorization)
        _name_cards(batch, report, applied)
        await self._name_engines(batch, report)
        is_stored = await self.writer.store(batch)
        return self._answer(identity, batch, applied, is_duplicate=not is_stored), encoding

    def _check(
        self,
        identity: AgentIdentity,
        report: body.QuickReport,
        headers: dict[bytes, bytes],
        received_ms: float,
        address: str | None,
    ) -> Batch:
        """Return the batch, still without its GPU rows. Raises Refused for one that is too old or names no run."""
        gpus, host, engines = gpu_block(report), host_block(report), engine_block(report)
        newest = _newest(gpus, host, engines)
        clock = sample_clock(
            received_ms=received_ms, sending=_sending(headers), os_boot_id=report.os_boot_id, newest=newest
        )
        if newest is not None and clock.at_ms(*newest) < received_ms - self.retention_ms:
            hours = settings.RAW_RETENTION_HOURS
            raise Refused(422, "too_old", f"These samples are older than the {hours} h that full resolution is kept.")
        if host is not None:
            host.subjects, host.states = [identity.server_id], [("", "")]
        return Batch(
            identity=identity,
            boot_id=body.boot_id_of(report),
            seq=report.seq,
            received_ms=received_ms,
            clock=clock,
            address=address,
            version=report.agent_version.replace("\0", ""),
            spooled_batches=report.spooled_batches,
            lost_samples=report.lost_samples,
            gpus=gpus,
            host=host,
            engines=engines,
        )

    async def _name_engines(self, batch: Batch, report: body.QuickReport) -> None:
        """Keep what is told of replicas that are, or lately were, on this server; the rest is nobody's and is left out."""
        if not report.engines:
            return
        named = [engine.replica for engine in report.engines]
        batch.endpoints = await self.owners.of(batch.identity.server_id, named, time.monotonic())
        if batch.engines is not None:
            batch.engines = batch.engines.only(batch.endpoints)
        batch.growths = growths_of(report, batch.endpoints, batch.clock, received_ms=batch.received_ms)

    async def _apply(self, batch: Batch, report: body.QuickReport, plain: bytes, encoding: str) -> Applied:
        try:
            return await self.inventories.apply(
                identity=batch.identity,
                report=report,
                plain=plain,
                encoding=encoding,
                received_ms=batch.received_ms,
                skew_seconds=batch.clock.skew_seconds,
                address=batch.address,
                now=time.monotonic(),
            )
        except FleetdeckError as error:
            raise Refused(error.status, error.code, error.message) from error

    def _answer(
        self, identity: AgentIdentity, batch: Batch, applied: Applied, *, is_duplicate: bool
    ) -> wire.ReportAnswer:
        quick = settings.WATCHED_INTERVAL_SECONDS if identity.server_id in self.publisher.watched else float("inf")
        return wire.ReportAnswer(
            seq=batch.seq,
            assignments_version=identity.assignments_version,
            sample_interval_seconds=min(identity.sample_interval_seconds, quick),
            report_interval_seconds=min(identity.report_interval_seconds, quick),
            panel_time_ms=int(time.time() * 1000),
            duplicate=is_duplicate,
            needs_facts=applied.needs_facts,
        )


def _make_partitions() -> None:
    sample_partitions_make()
    histogram_partitions_make(at=now())


def _sending(headers: dict[bytes, bytes]) -> Sending:
    return Sending(
        wall_ms=_whole(headers.get(_SENT_AT)),
        monotonic_ms=_whole(headers.get(_SENT_MONOTONIC)),
        os_boot_id=headers.get(_OS_BOOT_ID, b"").decode("latin-1"),
    )


def _whole(value: bytes | None) -> int | None:
    """Return a header's whole number of at most 15 digits, else None: a header that cannot be read is as good as none."""
    return int(value) if value is not None and len(value) <= 15 and value.isdigit() else None


def _newest(*blocks: Block | None) -> tuple[float, float] | None:
    """Return wall and monotonic time of the newest sample, by the monotonic clock."""
    found = [block.newest() for block in blocks if block is not None]
    return max(found, key=itemgetter(1)) if found else None


def _name_cards(batch: Batch, report: body.QuickReport, applied: Applied) -> None:
    """Say which GPUs the rows are of. Raises Refused (422) for a card that the inventory does not know."""
    if batch.gpus is None:
        return
    cards = [gpu for gpu in report.gpus if gpu.rows or gpu.samples]
    try:
        batch.gpus.subjects = [applied.gpu_ids[gpu.uuid] for gpu in cards]
    except KeyError as error:
        raise Refused(422, "unknown_gpu", f"GPU {error.args[0]} does not belong to this agent's server.") from error
    batch.gpus.states = [(gpu.state, gpu.reason) for gpu in cards]


def client_address(scope: Scope, headers: dict[bytes, bytes]) -> str | None:
    """Return the agent's address; of X-Forwarded-For only the last entry counts, and only behind our own proxy."""
    client = scope.get("client")
    candidate = str(client[0]) if client else ""
    if settings.BEHIND_PROXY:
        candidate = headers.get(b"x-forwarded-for", b"").decode("latin-1").rpartition(",")[2].strip() or candidate
    return _address(candidate)


@lru_cache(maxsize=4096)
def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


class IngestApplication:
    """ASGI 3: `http` and `lifespan`. Starts with the first request when its server speaks no lifespan."""

    def __init__(self) -> None:
        self._ingest: Ingest | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    def _running(self) -> Ingest:
        loop = asyncio.get_running_loop()
        if self._ingest is None or self._loop is not loop:
            self._ingest, self._loop = Ingest(), loop
        return self._ingest

    async def close(self) -> None:
        """Store what waits and stop; the next request starts anew."""
        ingest, self._ingest = self._ingest, None
        if ingest is not None and self._loop is asyncio.get_running_loop():
            await ingest.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._running()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        extra: list[tuple[bytes, bytes]] = []
        encoding = "json" if headers.get(b"content-type", b"").startswith(b"application/json") else "msgpack"
        try:
            if scope["method"] != "POST":
                extra.append((b"allow", b"POST"))
                raise Refused(405, "method_not_allowed", "Reports are sent by POST.")
            answer, encoding = await self._running().report(scope, headers, receive)
            status, content = 200, _ENCODE[encoding](answer)
        except DatabaseError as error:
            log.warning("ingest.database_unavailable", error=str(error))
            status, content = _refuse(
                unavailable("The database is not available; the batch was not stored."), encoding, extra
            )
        except Refused as error:
            status, content = _refuse(error, encoding, extra)
        await _send_response(send, status, content, [(b"content-type", _ANSWER_TYPES[encoding]), *extra])


def _refuse(error: Refused, encoding: str, extra: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    if error.retry_after_seconds is not None:
        extra.append((b"retry-after", str(max(1, round(error.retry_after_seconds))).encode()))
    if error.status == 401:
        extra.append((b"www-authenticate", b"Bearer"))
    return error.status, _ENCODE[encoding](wire.Refusal(error.code, error.message))


async def _send_response(send: Send, status: int, content: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


application = IngestApplication()
