"""Steps of load until the endpoint takes no more: which comes next, when to stop, where the knee lies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from monitoring.fits import line_through
from monitoring.golive.enums import Stop
from monitoring.knee import Knee, Step, disagreeing, knee_of

SHORTEST_SECONDS: Final = 30.0
WINDOW_SECONDS: Final = 120.0
SLOW_TTFT_MS: Final = 2_500.0
MOST_ERRORS: Final = 0.05
MOST_CONCURRENCY: Final = 256


@dataclass(frozen=True, slots=True)
class Point:
    """One request that was answered while a load is on: when (seconds), how many were in flight then, its time to the first token
    (of plain responses: the whole time) in ms.
    """

    at_seconds: float
    in_flight: float
    ttft_ms: float


@dataclass(frozen=True, slots=True)
class LoadStep:
    """One step that is over. goodput_per_second: requests that kept everything that was promised."""

    step: Step
    error_share: float
    goodput_per_second: float
    is_oversaturated: bool = False


@dataclass(frozen=True, slots=True)
class Saturation:
    """What the steps add up to. best: the concurrency with the most goodput, the smaller of equals; None when nothing was good.

    contradictory: concurrencies whose figures are against Little's law: the load was not what it should have been.
    """

    knee: Knee | None
    best: int | None
    best_goodput_per_second: float
    stopped_by: Stop | None
    contradictory: list[int]


def is_oversaturated(points: Sequence[Point]) -> bool:
    """Return whether the queue only grows: requests in flight and time to the first token both rise beyond doubt.

    In the last 120 s, of which 30 s at least have to be there, the 95 % intervals of both slopes lie over 0, and first tokens
    take longer than 2.5 s by now (the stop rule of guidellm).
    """
    if not points:
        return False
    end = max(point.at_seconds for point in points)
    window = sorted((p for p in points if p.at_seconds >= end - WINDOW_SECONDS), key=lambda point: point.at_seconds)
    if end - window[0].at_seconds < SHORTEST_SECONDS:
        return False
    times = [point.at_seconds for point in window]
    lines = [line_through(times, [getattr(point, name) for point in window]) for name in ("in_flight", "ttft_ms")]
    newest = sorted(point.ttft_ms for point in window[-max(len(window) // 4, 1) :])
    return all(line is not None and line.is_rising for line in lines) and newest[len(newest) // 2] > SLOW_TTFT_MS


def stop_reason(done: Sequence[LoadStep], most: int = MOST_CONCURRENCY) -> Stop | None:
    """Return why the last step is the last one; None to go on."""
    if not done:
        return None
    last = max(done, key=lambda entry: entry.step.concurrency)
    if last.is_oversaturated:
        return Stop.OVERSATURATED
    if last.error_share > MOST_ERRORS:
        return Stop.ERRORS
    if knee_of([entry.step for entry in done]) is not None:
        return Stop.PLATEAU
    return Stop.MOST if last.step.concurrency * 2 > most else None


def next_concurrency(done: Sequence[LoadStep], most: int = MOST_CONCURRENCY) -> int | None:
    """Return the concurrency of the next step (1, 2, 4, 8, …); None when there is none to take."""
    if stop_reason(done, most) is not None:
        return None
    return 2 * max(entry.step.concurrency for entry in done) if done else 1


def saturation_of(done: Sequence[LoadStep], most: int = MOST_CONCURRENCY) -> Saturation:
    """Return where throughput stops growing and goodput is highest."""
    steps = [entry.step for entry in done]
    best = max(done, key=lambda entry: (entry.goodput_per_second, -entry.step.concurrency), default=None)
    has_good = best is not None and best.goodput_per_second > 0
    return Saturation(
        knee=knee_of(steps),
        best=best.step.concurrency if best is not None and has_good else None,
        best_goodput_per_second=best.goodput_per_second if best is not None else 0.0,
        stopped_by=stop_reason(done, most),
        contradictory=disagreeing(steps),
    )
