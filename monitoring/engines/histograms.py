"""Histograms in the buckets that an engine has: merged by adding, and read with the bucket's edges beside the number. Pure.

A percentile of buckets is only known to lie between two bounds. What is shown inside them is placed evenly, as Prometheus'
histogram_quantile does it; above the highest bound there is no number at all, only that it is more than that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, Self

from monitoring.percentiles import fewest

QUANTILES: Final = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Estimate:
    """One percentile of n requests. low_ms, high_ms: edges of the bucket that it lies in; high_ms None: above all bounds.

    value_ms: evenly placed between them, None above all bounds, without requests or without buckets. is_enough: whether n is
    large enough to show it.
    """

    q: float
    n: int
    value_ms: float | None
    low_ms: float | None
    high_ms: float | None
    is_enough: bool

    @property
    def is_over_range(self) -> bool:
        """Whether it lies above the highest bound: more than low_ms is all that is known."""
        return self.low_ms is not None and self.high_ms is None


@dataclass(frozen=True, slots=True)
class Bucketed:
    """Requests by bucket. bounds: upper ones in seconds, ascending; counts: one for each and, last, above all of them.

    sum_seconds: of all, None where it is not known. unplaced: requests whose buckets did not add up: counted, and in no bucket.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    sum_seconds: float | None = None
    unplaced: int = 0

    @classmethod
    def of(cls, bounds: Iterable[float], counts: Iterable[int], sum_seconds: float | None) -> Self:
        """Return a histogram as it is stored; without bounds its requests are unplaced. Raises ValueError."""
        edges, numbers = tuple(bounds), tuple(counts)
        if len(numbers) != len(edges) + 1:
            raise ValueError(
                f"{len(edges)} bounds have {len(numbers)} counts; there is one more of them than of bounds"
            )
        return cls(edges, numbers, sum_seconds) if edges else cls((), (), sum_seconds, sum(numbers))

    @property
    def n(self) -> int:
        """Requests in buckets."""
        return sum(self.counts)

    @property
    def mean_ms(self) -> float | None:
        """Mean of all requests, None where the engine tells no sum or there were none."""
        total = self.n + self.unplaced
        return self.sum_seconds * 1000 / total if total and self.sum_seconds is not None else None

    def merged(self, other: "Bucketed") -> "Bucketed":
        """Return both together. Where their bounds differ the common ones stay: what lies between is known of neither alone."""
        if not other.n + other.unplaced:
            return self
        if not self.n + self.unplaced:
            return other
        sums = (self.sum_seconds, other.sum_seconds)
        total = None if None in sums else sum(one for one in sums if one is not None)
        unplaced = self.unplaced + other.unplaced
        if not self.n or not other.n:
            whole = self if self.n else other
            return Bucketed(whole.bounds, whole.counts, total, unplaced)
        mine, theirs = self, other
        if mine.bounds != theirs.bounds:
            common = set(mine.bounds) & set(theirs.bounds)
            mine, theirs = mine.coarsened(common), theirs.coarsened(common)
        counts = tuple(a + b for a, b in zip(mine.counts, theirs.counts, strict=True))
        return Bucketed(mine.bounds, counts, total, unplaced)

    def coarsened(self, bounds: Iterable[float]) -> "Bucketed":
        """Return it with these of its bounds alone."""
        kept = sorted(set(bounds) & set(self.bounds))
        below = dict(zip(self.bounds, accumulate(self.counts), strict=False))
        edges = [0, *(below[bound] for bound in kept), self.n]
        counts = tuple(high - low for low, high in pairwise(edges))
        return Bucketed(tuple(kept), counts, self.sum_seconds, self.unplaced)

    def estimates(self, qs: Iterable[float] = QUANTILES) -> list[Estimate]:
        """Return percentiles in ms."""
        return [self.estimate(q) for q in qs]

    def estimate(self, q: float) -> Estimate:
        """Return one percentile; all None without requests in buckets."""
        n = self.n
        if not n or not self.bounds:
            return Estimate(q, n, None, None, None, is_enough=False)
        is_enough, wanted, before = n >= fewest(q), q * n, 0
        for place, (bound, here) in enumerate(zip(self.bounds, self.counts, strict=False)):
            if here and before + here >= wanted:
                low = self.bounds[place - 1] if place else min(0.0, bound)
                value = low + (bound - low) * max(wanted - before, 0.0) / here
                return Estimate(q, n, value * 1000, low * 1000, bound * 1000, is_enough)
            before += here
        return Estimate(q, n, None, self.bounds[-1] * 1000, None, is_enough)

    def share_over(self, threshold_ms: float) -> tuple[float, float] | None:
        """Return between which shares of the requests were over a threshold, None without any; the same two at a bound."""
        n = self.n
        if not n:
            return None
        below = [(bound * 1000, number) for bound, number in zip(self.bounds, accumulate(self.counts), strict=False)]
        surely_below = max((number for bound, number in below if bound <= threshold_ms), default=0)
        perhaps_below = min((number for bound, number in below if bound >= threshold_ms), default=n)
        return (n - perhaps_below) / n, (n - surely_below) / n


def merged(parts: Iterable[Bucketed]) -> Bucketed:
    """Return all together; nothing of nothing."""
    whole = Bucketed()
    for part in parts:
        whole = whole.merged(part)
    return whole
