"""How far an engine's histograms grew since they were last told: increments, which add up in any order. Pure."""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from fleet.agent.engines.exposed.reading import HISTOGRAMS, EngineMetrics, Histogram
from fleet.agent.wire_engines import EngineHistogram, HistogramName

NAMES: Final[Mapping[str, HistogramName]] = {name: name for name in HISTOGRAMS}


class Growth:
    """One histogram of one engine: what was seen last, and what came since it was last told."""

    def __init__(self) -> None:
        self._seen: tuple[tuple[float, ...], tuple[float, ...], float, float | None] | None = None
        self._bounds: tuple[float, ...] = ()
        self._counts: Counter[int] = Counter()
        self._sum: float | None = None

    def add(self, found: Histogram) -> None:
        """Take one look. The first one, and one after a change of buckets, only says from where it grows.

        Where a count fell, the engine was started again: all that it has now came since then.
        """
        bounds = tuple(bound for bound, _ in found.buckets[:-1])
        counts = _apart(found)
        before, self._seen = self._seen, (bounds, counts, found.count, found.sum_seconds)
        if before is None or before[0] != bounds or len(before[1]) != len(counts):
            return
        is_restarted = any(new < old for new, old in zip(counts, before[1], strict=True))
        grown = counts if is_restarted else tuple(new - old for new, old in zip(counts, before[1], strict=True))
        if bounds != self._bounds:
            self._bounds, self._counts, self._sum = bounds, Counter(), None
        if any(grown):
            total = _grown_sum(found.sum_seconds, None if is_restarted else before[3])
            has_sum = self._sum is not None or not self._counts
            self._counts.update({place: round(number) for place, number in enumerate(grown) if number > 0})
            self._sum = (self._sum or 0.0) + total if has_sum and total is not None else None

    def take(self, name: HistogramName, at_ms: int, monotonic_ms: int) -> EngineHistogram | None:
        """Return what came since the last time, None for nothing."""
        if not self._counts:
            return None
        counts = [self._counts[place] for place in range(len(self._bounds) + 1)]
        told = EngineHistogram(name, at_ms, monotonic_ms, list(self._bounds), counts, self._sum)
        self._counts, self._sum = Counter(), None
        return told


def _apart(found: Histogram) -> tuple[float, ...]:
    """Return how many fell into each bucket; one number for all where the buckets do not add up."""
    if not found.buckets:
        return (found.count,)
    return tuple(high - low for low, high in pairwise([0.0, *(number for _, number in found.buckets)]))


def _grown_sum(now: float | None, before: float | None) -> float | None:
    return None if now is None else max(now - (before or 0.0), 0.0)


class Growths:
    """All histograms of one engine."""

    def __init__(self) -> None:
        self._by_name: dict[HistogramName, Growth] = {}

    def add(self, found: EngineMetrics) -> None:
        """Take one look at all of them."""
        for name, wire_name in NAMES.items():
            histogram: Histogram | None = getattr(found, name)
            if histogram is not None:
                self._by_name.setdefault(wire_name, Growth()).add(histogram)

    def take(self, at_ms: int, monotonic_ms: int) -> list[EngineHistogram]:
        """Return what came since the last time."""
        told = [growth.take(name, at_ms, monotonic_ms) for name, growth in self._by_name.items()]
        return [each for each in told if each is not None]
