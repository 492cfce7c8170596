"""What a report tells of engines: readings of their metrics pages, and what their histograms grew by."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class EngineSample(Struct, omit_defaults=True, array_like=True):
    """One look at the metrics page of one replica's engine, data-parallel engines and models added.

    running, waiting: requests now. kv_cache_percent: of the fullest engine. The rest are counters since the engine's start and
    fall when it is started again: requests are those that it has answered; own_requests are those that this agent itself has
    sent (real requests that tell whether it is ready), since the agent's start.
    """

    at_ms: int
    monotonic_ms: int
    running: float | None = None
    waiting: float | None = None
    kv_cache_percent: float | None = None
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    requests: float | None = None
    own_requests: float | None = None


HistogramName = Literal[
    "time_to_first_token", "inter_token", "queue_time", "prefill_time", "decode_time", "request_latency"
]


class EngineHistogram(Struct, omit_defaults=True, array_like=True):
    """What one engine's histogram grew by in about a minute, which is over at at_ms.

    bounds: upper bounds of its buckets in seconds, ascending, as the engine has them, without the infinite one. counts: how many
    fell into each (not cumulative), one more than bounds: the last lay above all of them. sum_seconds: of all of them, None where
    the engine tells none. Empty bounds and one count: its buckets did not add up; number and sum are all that is known.
    """

    name: HistogramName
    at_ms: Annotated[int, Meta(ge=0, le=100_000_000_000_000)]
    monotonic_ms: Annotated[int, Meta(ge=0, le=100_000_000_000_000)]
    bounds: Annotated[list[float], Meta(max_length=200)]
    counts: Annotated[list[Annotated[int, Meta(ge=0, le=2**53)]], Meta(min_length=1, max_length=201)]
    sum_seconds: float | None = None


class Engine(Struct, omit_defaults=True):
    """What one replica's engine told. rows: how many of `Report.engine_columns` are its, the oldest first.

    has_previous: the first of them is the reading before the batch, of the same run of the engine as far as its counters tell.
    """

    replica: Annotated[int, Meta(ge=1, le=2_147_483_647)]
    rows: Annotated[int, Meta(ge=0)] = 0
    has_previous: bool = False
    histograms: list[EngineHistogram] = []
