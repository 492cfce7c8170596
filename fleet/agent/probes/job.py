"""One probe in the making: what a kind of probe gets to work with."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import h11

from fleet.agent.probes.channel import Channel, fresh_web, open_channel
from fleet.agent.probes.dial import Way
from fleet.agent.probes.link import LostError
from fleet.agent.probes.result import ProbeError, Trace
from fleet.agent.probes.target import STREAMS, Target
from fleet.agent.probes.web import Answer, OnBody, Request, encode, exchange

NONCE: str = "{nonce}"
# By which a stream's connection is opened when the target names nothing else: it costs no tokens.
MODELS_PATH: str = "/v1/models"
READY_PATH: str = "/v2/health/ready"


@dataclass(slots=True)
class Job:
    """One probe. nonce: its unique text. channel: open already for a warm one, else opened at first need.

    without_usage: ids of targets whose engine refuses to be asked for its token counts; shared by all probes of a process.
    on_open: called when the connection is open.
    """

    way: Way
    target: Target
    vantage: str
    nonce: str
    trace: Trace = field(default_factory=Trace)
    channel: Channel | None = None
    without_usage: set[int] = field(default_factory=set)
    on_open: Callable[[], None] | None = None

    async def open(self, web: h11.Connection | None = None, ahead: bytes = b"") -> Channel:
        """Return the channel, opened if there is none; the clock starts here at the latest. Raises ProbeError."""
        if self.channel is None:
            self.channel = await open_channel(self.way, self.target, self.trace, web or fresh_web(), ahead)
        self.trace.start()
        if self.on_open is not None:
            self.on_open()
        self.trace.address, self.trace.family = self.channel.address, 6 if ":" in self.channel.address else 4
        return self.channel

    async def ask(self, request: Request, on_body: OnBody) -> Answer:
        """Send a request over the channel; see `exchange`. Raises ProbeError."""
        web = fresh_web() if self.channel is None else self.channel.web
        data = encode(web, request)
        channel = await self.open(web, data)
        try:
            return await exchange(channel, data, self.trace, on_body, limit=self.target.max_body_bytes)
        except LostError as error:
            raise ProbeError("http", "closed", f"closed without an answer: {error}") from None

    def begin_again(self, *, is_from_start: bool) -> None:
        """Give up the connection and what was measured. is_from_start: the clock starts anew too."""
        self.drop()
        self.trace.begin_again()
        if is_from_start:
            self.trace.is_started = False

    def drop(self) -> None:
        """Close the connection at once."""
        if self.channel is not None:
            self.channel.link.abort()
            self.channel = None

    @property
    def warm_path(self) -> str:
        """What is fetched to open the connection of a warm probe."""
        target = self.target
        usual = MODELS_PATH if target.kind in STREAMS else READY_PATH if target.kind == "kserve_infer" else target.path
        return target.warm_path or usual

    def encoded(self, body: object) -> bytes:
        """Return a body as bytes with its nonce filled in; b"" for None."""
        if body is None:
            return b""
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        return text.replace(NONCE, self.nonce).encode()
