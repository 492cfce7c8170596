"""Where more concurrency stops buying throughput, and whether the figures of a step agree with Little's law."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

LEAST_GAIN: Final = 0.10  # of throughput, for each doubling of concurrency
LITTLE_TOLERANCE: Final = 0.20


@dataclass(frozen=True, slots=True)
class Step:
    """One level of a concurrency sweep. latency_ms: mean of a request. throughput_per_second: of requests that succeeded."""

    concurrency: int
    latency_ms: float
    throughput_per_second: float

    @property
    def in_flight(self) -> float:
        """Throughput times latency: by Little's law as many requests were there at once."""
        return self.throughput_per_second * self.latency_ms / 1000

    @property
    def agrees_with_little(self) -> bool:
        """Whether that is the concurrency that was meant (within 20 %): if not, the load was not what the step says."""
        return abs(self.in_flight - self.concurrency) <= LITTLE_TOLERANCE * self.concurrency


@dataclass(frozen=True, slots=True)
class Knee:
    """The smallest concurrency from which a doubling gains less than 10 % throughput."""

    concurrency: int
    throughput_per_second: float
    latency_ms: float


def knee_of(steps: Sequence[Step]) -> Knee | None:
    """Return the knee of a sweep; None when throughput still grows at its end, or there are fewer than two levels.

    A gain over more or less than a doubling counts as that many doublings.
    """
    ordered = sorted(steps, key=lambda step: step.concurrency)
    for here, after in pairwise(ordered):
        needed = (after.concurrency / here.concurrency - 1) * LEAST_GAIN
        if here.throughput_per_second <= 0:
            continue
        if after.throughput_per_second / here.throughput_per_second - 1 < needed:
            return Knee(here.concurrency, here.throughput_per_second, here.latency_ms)
    return None


def disagreeing(steps: Sequence[Step]) -> list[int]:
    """Return the concurrencies whose figures contradict Little's law."""
    return [step.concurrency for step in steps if not step.agrees_with_little]
