"""The ingest application in a thread of its own, spoken to as agents do; tests read the database meanwhile."""

import asyncio
import threading
import time
import uuid
from dataclasses import dataclass, field

import httpx
import msgspec
import zstandard

from fleet.agent import wire
from fleet.agent.packing import packed
from fleet.models import Agent, Server
from monitoring.ingest.app import IngestApplication
from panel.core import tokens
from panel.core.clock import now

REPORT_URL = "http://panel/api/agent/v1/report/"


@dataclass
class Sender:
    """An agent that joined: its rows, its token, and the run that its reports belong to."""

    server: Server
    agent: Agent
    token: str
    boot_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    seq: int = 0

    def report(self, gpus=(), host_samples=(), *, seq=None, **fields):
        """Return the next report of this run."""
        if seq is None:
            self.seq += 1
            seq = self.seq
        fields.setdefault("driver", wire.Driver(state="ok", version="570.86"))
        return wire.Report(
            protocol=wire.PROTOCOL,
            boot_id=self.boot_id,
            seq=seq,
            agent_version="0.1.0",
            gpus=list(gpus),
            host_samples=list(host_samples),
            **fields,
        )


def join(name="gpu-1", *, state="ready", **fields):
    """Make a server with an agent, as after a join."""
    issued = tokens.issue(tokens.AGENT_TOKEN)
    at = now()
    server = Server.objects.create(name=name, state=state, state_changed_at=at, created_at=at)
    agent = Agent.objects.create(
        server=server, token_prefix=issued.prefix, token_hash=issued.token_hash, joined_at=at, **fields
    )
    return Sender(server, agent, issued.token)


def now_ms():
    return int(time.time() * 1000)


def gpu(uuid="GPU-a", ages=(5, 0), *, at_ms=None, facts=True, state="ok", **readings):
    """Return a card with samples of these ages in seconds; readings go into every sample."""
    at_ms = at_ms or now_ms()
    return wire.Gpu(
        uuid=uuid,
        index=0,
        state=state,
        facts=wire.GpuFacts(name="NVIDIA H200", memory_total_bytes=150 << 30) if facts else None,
        samples=[
            wire.GpuSample(at_ms=int(at_ms - age * 1000), monotonic_ms=int(1_000_000_000 - age * 1000), **readings)
            for age in ages
        ],
    )


class Panel:
    """The application under its lifespan. Use as a context manager."""

    def __init__(self):
        self.application = IngestApplication()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self.run(self._open())
        return self

    def __exit__(self, *_error):
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def run(self, coroutine, timeout=60):
        """Run a coroutine in the application's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout)

    @property
    def ingest(self):
        return self.application._ingest

    async def _open(self):
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app=self.application))
        self._inbox: asyncio.Queue = asyncio.Queue()
        self._outbox: asyncio.Queue = asyncio.Queue()
        self._lifespan = asyncio.create_task(self.application({"type": "lifespan"}, self._inbox.get, self._outbox.put))
        await self._inbox.put({"type": "lifespan.startup"})
        assert (await self._outbox.get())["type"] == "lifespan.startup.complete"

    async def _close(self):
        await self._inbox.put({"type": "lifespan.shutdown"})
        assert (await self._outbox.get())["type"] == "lifespan.shutdown.complete"
        await self._lifespan
        await self._client.aclose()

    def post(self, sender, report, **options):
        """Send one report; returns the response with `.answer` decoded."""
        return self.run(self._post(sender, report, **options))

    def post_all(self, pairs, **options):
        """Send many (sender, report) at once."""

        async def together():
            return await asyncio.gather(*(self._post(sender, report, **options) for sender, report in pairs))

        return self.run(together())

    async def _post(self, sender, report, *, compress=True, headers=None, content=None, as_rows=False):
        body = content if content is not None else msgspec.msgpack.encode(report if as_rows else packed(report))
        sent = {"authorization": f"Bearer {sender.token}", "content-type": wire.CONTENT_TYPE}
        if compress and content is None:
            body = zstandard.ZstdCompressor().compress(body)
            sent["content-encoding"] = "zstd"
        response = await self._client.post(REPORT_URL, content=body, headers=sent | (headers or {}))
        decode = (
            msgspec.json.decode if response.headers["content-type"] == "application/json" else msgspec.msgpack.decode
        )
        response.answer = decode(response.content)
        return response
