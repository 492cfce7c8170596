"""Histograms of gateways: merged by adding buckets, and read by rank. Quantiles are never averaged. Pure.

Bucket k counts times in [2**(k/32), 2**((k+1)/32)) ms, so a quantile read from it is off by 2.2 % at most.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

BUCKETS_PER_DOUBLING: Final = 32
# Below so many samples nobody can say with 95 % confidence that the largest of them lies above the quantile:
# 1 - q**n >= 0.95 holds from n = 29 on for P90, from n = 59 on for P95, and from n = 299 on for P99.
ENOUGH: Final[Mapping[float, int]] = {0.5: 1, 0.9: 29, 0.95: 59, 0.99: 299}


@dataclass(frozen=True, slots=True)
class Histogram:
    """Samples by bucket. count: of all samples; sum_ms: of their times."""

    count: int
    sum_ms: float
    buckets: Mapping[int, int]


def merged(stored: Iterable[Mapping[str, Any]]) -> Histogram:
    """Return one histogram of several as they are stored, `{count, sum_ms, buckets: {k: n}}`."""
    buckets: Counter[int] = Counter()
    count, sum_ms = 0, 0.0
    for each in stored:
        count += int(each.get("count", 0))
        sum_ms += float(each.get("sum_ms", 0.0))
        for key, number in each.get("buckets", {}).items():
            buckets[int(key)] += int(number)
    return Histogram(count, sum_ms, dict(buckets))


def quantile(histogram: Histogram, share: float) -> float | None:
    """Return the time in ms that a share (0 to 1) of the samples do not exceed, by nearest rank; None without samples.

    Within a bucket samples are taken as spread evenly on the logarithmic scale.
    """
    total = sum(histogram.buckets.values())
    if total == 0:
        return None
    rank = max(math.ceil(share * total), 1)
    before = 0
    for key in sorted(histogram.buckets):
        here = histogram.buckets[key]
        if before + here >= rank:
            within = (rank - before - 0.5) / here
            return float(2 ** ((key + within) / BUCKETS_PER_DOUBLING))
        before += here
    raise AssertionError("a rank lies within its samples")  # pragma: no cover


def has_enough(histogram: Histogram, share: float) -> bool:
    """Say whether there are enough samples for this quantile to mean anything; see ENOUGH."""
    return sum(histogram.buckets.values()) >= ENOUGH.get(share, 1)


def mean(histogram: Histogram) -> float | None:
    """Return the mean time in ms, None without samples."""
    return histogram.sum_ms / histogram.count if histogram.count else None
