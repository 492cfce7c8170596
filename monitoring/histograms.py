"""Durations in logarithmic buckets: small, merged by adding, and right to 1.1 % for every percentile.

Bucket k counts durations of [2**(k/32), 2**((k+1)/32)) ms, as gateways report theirs (fleet.agent.orders.Histogram) and as
schema 5 of Prometheus' native histograms has it. Failures stand beside the buckets and lie over every threshold; zeros stand
beside them too. Sums are whole microseconds, so that merging in any order gives the same.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from fleet.agent.gateway.traffic import BUCKETS_PER_DOUBLING, SHORTEST_MS, bucket_of
from fleet.agent.orders import Histogram
from monitoring.percentiles import rank

# A value read from a bucket's geometric middle: 2**(1/64) - 1, 1.09 %.
RELATIVE_ERROR: Final = 2 ** (1 / (2 * BUCKETS_PER_DOUBLING)) - 1


@dataclass(frozen=True, slots=True)
class LogHistogram:
    """Counts of durations. over: failures. zero: durations shorter than a microsecond, which have no logarithm worth having.

    sum_us: of all that did not fail.
    """

    buckets: Mapping[int, int] = field(default_factory=dict)
    zero: int = 0
    over: int = 0
    sum_us: int = 0

    @classmethod
    def of(cls, values_ms: Iterable[float]) -> Self:
        """Count durations, failures among them as math.inf. Raises ValueError for NaN and negative ones."""
        buckets: Counter[int] = Counter()
        zero = over = sum_us = 0
        for value in values_ms:
            if not value >= 0:
                raise ValueError(f"{value} is no duration; one that failed is inf")
            if math.isinf(value):
                over += 1
                continue
            sum_us += round(value * 1000)
            if value < SHORTEST_MS:
                zero += 1
            else:
                buckets[bucket_of(value)] += 1
        return cls(dict(buckets), zero, over, sum_us)

    @classmethod
    def of_gateway(cls, told: Histogram) -> Self:
        """Return a gateway's histogram in this shape."""
        return cls(dict(told.buckets), sum_us=round(told.sum_ms * 1000))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return what `as_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        buckets = {int(key): int(count) for key, count in stored["buckets"].items()}
        return cls(buckets, int(stored.get("zero", 0)), int(stored.get("over", 0)), int(stored.get("sum_us", 0)))

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON, with buckets in order and by text keys."""
        buckets = {str(key): self.buckets[key] for key in sorted(self.buckets)}
        return {"buckets": buckets, "zero": self.zero, "over": self.over, "sum_us": self.sum_us}

    @property
    def count(self) -> int:
        """How many durations, failures included."""
        return sum(self.buckets.values()) + self.zero + self.over

    @property
    def mean_ms(self) -> float | None:
        """Mean of those that did not fail; None without any. It is no percentile and says little of tails."""
        measured = self.count - self.over
        return self.sum_us / 1000 / measured if measured else None

    def __add__(self, other: "LogHistogram") -> "LogHistogram":
        return merged((self, other))

    def quantile_ms(self, q: float) -> float | None:
        """Return a percentile, off by RELATIVE_ERROR at most: None without durations, math.inf among the failures."""
        n = self.count
        if not n:
            return None
        left = rank(q, n) - self.zero
        if left <= 0:
            return 0.0
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return float(2.0 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING))
        return math.inf

    def count_over(self, threshold_ms: float) -> int:
        """Return how many lie over a threshold, failures included; those in the threshold's own bucket do not count."""
        if threshold_ms < SHORTEST_MS:
            return self.count - self.zero
        own = bucket_of(threshold_ms)
        return self.over + sum(count for bucket, count in self.buckets.items() if bucket > own)


def merged(histograms: Iterable[LogHistogram]) -> LogHistogram:
    """Return the histogram of everything in several: exact, whatever the order, because counts are added."""
    buckets: Counter[int] = Counter()
    zero = over = sum_us = 0
    for one in histograms:
        buckets.update(one.buckets)
        zero, over, sum_us = zero + one.zero, over + one.over, sum_us + one.sum_us
    return LogHistogram({key: count for key, count in buckets.items() if count}, zero, over, sum_us)
