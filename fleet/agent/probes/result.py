"""What a probe found: one immutable row, whose times are null where their phase did not happen."""

import re
import time
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from fleet.agent.probes.target import Connection, Kind
from fleet.agent.probes.tls import Session

Outcome = Literal[
    "ok", "timeout", "dns", "connect", "tls", "http", "body", "stream_error", "empty", "aborted", "vantage_down", "skipped"
]  # fmt: skip
Phase = Literal["start", "dns", "tcp", "tls", "send", "wait", "transfer", "done"]

DETAIL_LENGTH: Final = 300
LATE_START_MS: Final = 1_000.0
LONG_LAG_MS: Final = 20.0
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


class ProbeError(Exception):
    """The probe found something that is not ok. reason: a short code; detail: a sentence, or what the other side said."""

    def __init__(self, outcome: Outcome, reason: str, detail: str = "") -> None:
        super().__init__(f"{outcome}: {reason}: {detail}")
        self.outcome, self.reason, self.detail = outcome, reason, detail


class Hop(Struct, omit_defaults=True, frozen=True):
    """One request on the way along redirects. location: where it led."""

    url: Annotated[str, Meta(max_length=1_000)]
    status: int
    location: Annotated[str, Meta(max_length=1_000)] = ""
    address: str = ""
    dns_ms: float | None = None
    tcp_ms: float | None = None
    tls_ms: float | None = None
    ttfb_ms: float | None = None


class ProbeResult(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """One probe.

    scheduled_ms, started_ms: wall clock, ms since 1970. Everything else in ms is a duration by the monotonic clock, from just
    before the connection is asked for (warm: before the request is sent) and null where it did not happen:
    dns, tcp, tls: of a new connection (tcp: of the attempt that succeeded). send: until the whole request was handed to the
    system. wait: from then to the response's headers. transfer: from there to the end of the body. other: what lies between.
    ttfb: to the headers. ttfe: to the first event of a stream; ttft: to the first with text, reasoning or arguments of a tool
    call; ttfot: to the first with text. tpot: per token after the first, by the tokens that the engine reported. chunk_p50,
    chunk_max: gaps between events with text, which may hold several tokens. e2e: to the last event with text or reasoning, of
    other kinds as total. total: to the end, of probes that were ok only; elapsed: how long it took, whatever came out.

    phase_reached: the one it was in when it ended (`done`: all). address, family, tried: the address used, and how many were
    tried. tokens: `usage` as the engine reported them, `estimated` by events. timeout_ms: the effective one. loop_lag_ms: how
    late this process woke up meanwhile (99th percentile); sched_lag_ms: how late the probe began. is_suspect: one of them is
    over its limit, or names had to wait for a resolver: the result stays on record and is left out of alerting.
    reason: a code for what is not ok; detail: a sentence, or what the server said, as text.
    """

    target: int
    kind: Kind
    vantage: Annotated[str, Meta(max_length=100)]
    connection: Connection
    scheduled_ms: int
    started_ms: int
    outcome: Outcome
    phase_reached: Phase = "start"
    reason: Annotated[str, Meta(max_length=48)] = ""
    detail: Annotated[str, Meta(max_length=DETAIL_LENGTH)] = ""
    address: Annotated[str, Meta(max_length=64)] = ""
    family: Literal[4, 6] | None = None
    tried: int = 0
    status: int | None = None
    dns_ms: float | None = None
    tcp_ms: float | None = None
    tls_ms: float | None = None
    send_ms: float | None = None
    wait_ms: float | None = None
    transfer_ms: float | None = None
    other_ms: float | None = None
    ttfb_ms: float | None = None
    ttfe_ms: float | None = None
    ttft_ms: float | None = None
    ttfot_ms: float | None = None
    tpot_ms: float | None = None
    chunk_p50_ms: float | None = None
    chunk_max_ms: float | None = None
    e2e_ms: float | None = None
    total_ms: float | None = None
    elapsed_ms: float = 0.0
    bytes: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tokens: Literal["", "usage", "estimated"] = ""
    certificate_days: float | None = None
    tls_version: Annotated[str, Meta(max_length=16)] = ""
    timeout_ms: float = 0.0
    loop_lag_ms: float | None = None
    sched_lag_ms: float = 0.0
    is_suspect: bool = False
    hops: list[Hop] = []


@dataclass(slots=True)
class Trace:
    """What happened so far, written as it happens, so that a probe that is cut off leaves behind how far it came.

    Moments are monotonic seconds; None: not yet. Durations of connecting are seconds.
    """

    started: float = field(default_factory=time.monotonic)
    is_started: bool = False
    phase: Phase = "start"
    dns: float | None = None
    tcp: float | None = None
    tls: float | None = None
    send_began: float | None = None
    sent: float | None = None
    headers: float | None = None
    ended: float | None = None
    first_event: float | None = None
    first_token: float | None = None
    first_text: float | None = None
    last_token: float | None = None
    gaps: list[float] = field(default_factory=list)
    address: str = ""
    family: Literal[4, 6] | None = None
    tried: int = 0
    status: int | None = None
    bytes: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tokens: Literal["", "usage", "estimated"] = ""
    session: Session | None = None
    resolver_waited: float = 0.0
    hops: list[Hop] = field(default_factory=list)

    def start(self) -> None:
        """Let the clock begin, unless it runs: what was prepared before is our own work and nobody's latency."""
        if not self.is_started:
            self.started, self.is_started = time.monotonic(), True

    def begin_again(self) -> None:
        """Forget what belongs to one request, before the next one of the same probe (a redirect, a second try)."""
        fresh = Trace(
            started=self.started, is_started=self.is_started, hops=self.hops, resolver_waited=self.resolver_waited
        )
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))


def plain(text: str) -> str:
    """Return text from outside as one bounded line without control characters."""
    return _CONTROLS.sub(" ", text).strip()[:DETAIL_LENGTH]


def span_ms(begin: float | None, end: float | None) -> float | None:
    """Return the time between two moments in ms, rounded to microseconds; None when one did not happen."""
    return None if begin is None or end is None else round(max(end - begin, 0.0) * 1000, 3)


def seconds_ms(seconds: float | None) -> float | None:
    """Return seconds as ms, None as None."""
    return None if seconds is None else round(seconds * 1000, 3)
