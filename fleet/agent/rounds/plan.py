"""What a place is told to measure for a diagnosis, and what it answers. Shared with the panel, which bounds both."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.target import Target

MOST_SLOTS: Final = 120
MOST_STEPS: Final = 8
LONGEST_WAIT_SECONDS: Final = 120.0

Measure = Literal["total", "ttft", "e2e"]
Stop = Literal["", "seconds", "requests", "tokens", "errors", "not_streamed"]


class Sweeps(Struct, kw_only=True):
    """Requests that load the engine on purpose, and where they end whatever happens.

    lengths: of prompts in tokens, `repeats` times each, one at a time. concurrencies: so many at once, `each` times after each
    other. most_*: over both together; tokens: of prompts and answers.
    """

    lengths: Annotated[tuple[Annotated[int, Meta(ge=1, le=131_072)], ...], Meta(max_length=MOST_STEPS)] = (
        128,
        512,
        2048,
        8192,
    )
    repeats: Annotated[int, Meta(ge=1, le=32)] = 8
    concurrencies: Annotated[tuple[Annotated[int, Meta(ge=1, le=64)], ...], Meta(max_length=MOST_STEPS)] = (
        1,
        2,
        4,
        8,
        16,
    )
    each: Annotated[int, Meta(ge=1, le=32)] = 4
    most_seconds: Annotated[float, Meta(gt=0, le=1_800)] = 300.0
    most_requests: Annotated[int, Meta(ge=1, le=2_000)] = 400
    most_tokens: Annotated[int, Meta(ge=1, le=2_000_000)] = 250_000


class Plan(Struct, omit_defaults=True, kw_only=True):
    """One place's part of a diagnosis.

    begin_at: when slot 0 begins, seconds since 1970 by this place's own clock. slots: those in which it measures. offset_seconds:
    into each slot, so that places do not meet. control: probed beside the target, to tell how this place itself is.
    metrics_path: the engine's page at the target's own address, read before and after the rounds; empty for none.
    measure: which time sweeps are about. typical_tokens: length of a usual prompt, for the sweep over concurrency.
    """

    target: Target
    begin_at: float
    slot_seconds: Annotated[float, Meta(gt=0, le=300)]
    slots: Annotated[list[Annotated[int, Meta(ge=0, le=10_000)]], Meta(max_length=MOST_SLOTS)]
    offset_seconds: Annotated[float, Meta(ge=0, le=300)] = 0.0
    control: Target | None = None
    metrics_path: Annotated[str, Meta(max_length=500)] = ""
    metrics_port: int | None = None
    measure: Measure = "total"
    typical_tokens: Annotated[int, Meta(ge=1, le=131_072)] = 512
    sweeps: Sweeps | None = None


class RoundFound(Struct, omit_defaults=True, kw_only=True):
    """What one slot brought; None: not asked here."""

    slot: int
    cold: ProbeResult
    warm: ProbeResult | None = None
    control: ProbeResult | None = None


class StepFound(Struct, omit_defaults=True, kw_only=True):
    """One level of concurrency. latency_ms: mean of a request; throughput_per_second: of those that succeeded; n: of them."""

    concurrency: int
    latency_ms: float
    throughput_per_second: float
    n: int = 0
    failed: int = 0


class LengthFound(Struct, omit_defaults=True, kw_only=True):
    """Latencies of one prompt length in ms. tokens: as the engine counted them, else as asked."""

    asked: int
    tokens: int
    latencies_ms: Annotated[list[float], Meta(max_length=64)] = []
    failed: int = 0


class EngineTimes(Struct, omit_defaults=True, kw_only=True):
    """Means over the rounds out of the engine's own counters, in ms and requests; None where its page does not tell."""

    queue_ms: float | None = None
    prefill_ms: float | None = None
    decode_ms: float | None = None
    waiting: float | None = None
    running: float | None = None
    kv_cache_usage: float | None = None
    requests: float | None = None


class Found(Struct, omit_defaults=True, kw_only=True):
    """What a place measured. stopped: why sweeps ended before their end; seconds, requests, tokens: what they took."""

    rounds: Annotated[list[RoundFound], Meta(max_length=MOST_SLOTS)] = []
    lengths: Annotated[list[LengthFound], Meta(max_length=MOST_STEPS)] = []
    steps: Annotated[list[StepFound], Meta(max_length=MOST_STEPS)] = []
    engine: EngineTimes | None = None
    stopped: Stop = ""
    seconds: float = 0.0
    requests: int = 0
    tokens: int = 0
    agent_version: Annotated[str, Meta(max_length=32)] = ""
