"""What a step of concurrency came to, from its requests; kept as JSON and read again. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from monitoring.golive.saturation import LoadStep, Point, is_oversaturated
from monitoring.golive_runs.asked import Asked
from monitoring.knee import Step

# Places of a shot's array (fleet.agent.load.order.Shot).
NUMBER, STEP, AT, IS_OK, IN_FLIGHT, TOTAL, TTFT, E2E, TPOT = range(9)


def step_of(concurrency: int, shots: Sequence[Sequence[Any]], asked: Asked) -> LoadStep:
    """Return what a step came to: throughput over its time, mean latency of what was answered, goodput, errors."""
    good = [shot for shot in shots if shot[IS_OK] and shot[TOTAL] is not None]
    begin = min((shot[AT] for shot in shots), default=0.0)
    end = max((shot[AT] + (shot[TOTAL] or 0.0) / 1000 for shot in shots), default=0.0)
    seconds = max(end - begin, 1e-6)
    latency = sum(shot[TOTAL] for shot in good) / len(good) if good else 0.0
    points = [
        Point(shot[AT], float(shot[IN_FLIGHT]), shot[TTFT] if shot[TTFT] is not None else shot[TOTAL]) for shot in good
    ]
    return LoadStep(
        step=Step(concurrency, latency, len(good) / seconds),
        error_share=1 - len(good) / len(shots) if shots else 1.0,
        goodput_per_second=sum(is_good(shot, asked) for shot in good) / seconds,
        is_oversaturated=is_oversaturated(points),
    )


def is_good(shot: Sequence[Any], asked: Asked) -> bool:
    """Say whether one answered request kept everything that counts for goodput; without limits, the promised percentile's."""
    limits = [(asked.ttft_ms, shot[TTFT]), (asked.tpot_ms, shot[TPOT]), (asked.e2e_ms, shot[E2E] or shot[TOTAL])]
    if all(limit is None for limit, _value in limits):
        measured = {"ttft": shot[TTFT], "e2e": shot[E2E], "total": shot[TOTAL]}[asked.measure]
        limits = [(asked.p99_ms or asked.p95_ms, measured)]
    return all(limit is None or (value is not None and value <= limit) for limit, value in limits)


def step_as_json(step: LoadStep) -> dict[str, Any]:
    """Return a step as plain values."""
    return {
        "concurrency": step.step.concurrency,
        "latency_ms": round(step.step.latency_ms, 3),
        "throughput_per_second": round(step.step.throughput_per_second, 4),
        "error_share": round(step.error_share, 6),
        "goodput_per_second": round(step.goodput_per_second, 4),
        "is_oversaturated": step.is_oversaturated,
    }


def steps_from(stored: Sequence[Mapping[str, Any]]) -> list[LoadStep]:
    """Return steps that `step_as_json` wrote."""
    return [
        LoadStep(
            step=Step(each["concurrency"], each["latency_ms"], each["throughput_per_second"]),
            error_share=each["error_share"],
            goodput_per_second=each["goodput_per_second"],
            is_oversaturated=each["is_oversaturated"],
        )
        for each in sorted(stored, key=lambda each: int(each["concurrency"]))
    ]
