"""From what places measured to the evidence of a diagnosis. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fleet.agent.rounds.plan import Found, RoundFound
from monitoring.diagnosis.enums import Measure
from monitoring.diagnosis.evidence import (
    CpuFacts,
    EngineFacts,
    Evidence,
    GpuSample,
    Marker,
    Objective,
    Round,
)
from monitoring.knee import Step

# Below so many tokens a prompt says nothing of lengths: it is the frame of a chat.
LEAST_TOKENS: Final = 1
_NO_ENGINE: Final = EngineFacts()
_NO_CPU: Final = CpuFacts()


def measure_of(metric: str, *, is_stream: bool) -> Measure:
    """Return which time a probe's metric (e2e, ttft, ttfb) is about; of what is no stream always the whole."""
    if not is_stream:
        return Measure.TOTAL
    return Measure.E2E if metric == "e2e" else Measure.TTFT


def rounds_of(
    outside: Mapping[str, Found], hosts: Iterable[Found], *, begin: float, slot_seconds: float
) -> tuple[Round, ...]:
    """Return the paired rounds: those of one slot belong together, whatever each place's clock says.

    outside: by the name of the place. hosts: of the engine's machines, each of which had slots of its own. begin: of slot 0,
    seconds since 1970. A slot without an answer on the host makes no round.
    """
    inside: dict[int, RoundFound] = {one.slot: one for found in hosts for one in found.rounds}
    paired = [
        Round(
            at=begin + one.slot * slot_seconds,
            vantage=name,
            cold=one.cold,
            host=inside[one.slot].cold,
            warm=one.warm,
            control=one.control,
        )
        for name, found in sorted(outside.items())
        for one in found.rounds
        if one.slot in inside
    ]
    return tuple(sorted(paired, key=lambda each: each.at))


def engine_of(hosts: Iterable[Found], facts: EngineFacts) -> EngineFacts:
    """Return what engines told of the rounds' minutes, as the mean over machines; `facts` has what else is known of them."""
    told = [found.engine for found in hosts if found.engine is not None]
    read = {
        name: [value for one in told if (value := getattr(one, name)) is not None]
        for name in ("queue_ms", "prefill_ms", "decode_ms", "waiting", "running", "kv_cache_usage")
    }
    means = {name: statistics.fmean(values) if values else getattr(facts, name) for name, values in read.items()}
    return EngineFacts(**means, max_num_seqs=facts.max_num_seqs, has_prefix_cache=facts.has_prefix_cache)


def typical_tokens(outside: Iterable[Found], default: int) -> int:
    """Return how long the prompts of the rounds were, as the engine counted them; the default where it does not count."""
    counted = [
        one.cold.prompt_tokens
        for found in outside
        for one in found.rounds
        if one.cold.prompt_tokens and one.cold.prompt_tokens >= LEAST_TOKENS
    ]
    return round(statistics.median(counted)) if counted else default


def evidence_of(
    *,
    objective: Objective,
    outside: Mapping[str, Found],
    hosts: Sequence[Found],
    begin: float,
    slot_seconds: float,
    typical: int,
    engine: EngineFacts = _NO_ENGINE,
    gpus: Sequence[GpuSample] = (),
    cpu: CpuFacts = _NO_CPU,
    markers: Sequence[Marker] = (),
    replicas: int = 1,
) -> Evidence:
    """Return the evidence of one diagnosis; see the fields of Evidence."""
    lengths = {one.tokens: tuple(one.latencies_ms) for found in hosts for one in found.lengths}
    steps = tuple(
        Step(one.concurrency, one.latency_ms, one.throughput_per_second)
        for found in hosts
        for one in found.steps
        if one.n
    )
    return Evidence(
        objective=objective,
        rounds=rounds_of(outside, hosts, begin=begin, slot_seconds=slot_seconds),
        engine=engine_of(hosts, engine),
        lengths=lengths,
        steps=steps,
        gpus=tuple(gpus),
        cpu=cpu,
        markers=tuple(markers),
        typical_tokens=typical,
        replicas=max(replicas, 1),
    )
