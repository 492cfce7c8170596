"""Exact percentiles of durations, and what so many of them can prove: ranks, smallest numbers, counts of breaches.

A failure lasts for ever: it counts as +Inf, so that it lies over every threshold. Percentiles are values that were measured
(SQL's percentile_disc), never interpolated and never averaged; those of several spans come from all their values, or from
merged histograms (see histograms). Everything here is a pure function.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

CONFIDENCE: Final = 0.95
# From so many on a percentile is shown. P50: both ends of its rank interval exist (2 * 0.5**n <= 0.05). Others: the largest
# value reaches the true percentile with 95 % (see `fewest`).
MEDIAN: Final = 0.5
FEWEST_FOR_MEDIAN: Final = 6

Values = Iterable[float] | npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile of n durations in ms, with what may be said of it.

    value_ms: None without durations; math.inf when it lies among the failures ("over the timeout"). is_enough: whether n is
    large enough to show it. low_ms, high_ms: ends of the 95 % interval by ranks; None where n is too small for that end. When
    not is_enough, all that is known is that the percentile is at least low_ms, or nothing at all when that is None.
    """

    q: float
    n: int
    value_ms: float | None
    is_enough: bool
    low_ms: float | None
    high_ms: float | None


def percentiles(values_ms: Values, qs: Iterable[float] = (0.5, 0.95, 0.99)) -> list[Percentile]:
    """Return the percentiles of durations in any order, failures among them as math.inf.

    Raises ValueError for NaN and negative durations, and for a q outside (0, 1).
    """
    ordered = ascending(values_ms)
    return [_percentile(ordered, q) for q in qs]


def ascending(values_ms: Values) -> npt.NDArray[np.float64]:
    """Return durations sorted. Raises ValueError for NaN and negative ones."""
    given = values_ms if isinstance(values_ms, np.ndarray) else list(values_ms)
    ordered = np.sort(np.asarray(given, dtype=np.float64))
    if ordered.size and (np.isnan(ordered[-1]) or ordered[0] < 0):
        raise ValueError("a duration is a number that is not negative; one that failed is inf")
    return ordered


def rank(q: float, n: int) -> int:
    """Return the rank (from 1) of a percentile among n values: the first with at least q of them up to it (percentile_disc)."""
    if not 0 < q < 1:
        raise ValueError(f"{q} is no percentile: it lies between 0 and 1")
    return max(1, math.ceil(q * n))


def _percentile(ordered: npt.NDArray[np.float64], q: float) -> Percentile:
    n = len(ordered)
    place = rank(q, n)
    if not n:
        return Percentile(q, 0, None, is_enough=False, low_ms=None, high_ms=None)
    low, high = rank_interval(q, n)
    return Percentile(
        q=q,
        n=n,
        value_ms=float(ordered[place - 1]),
        is_enough=n >= fewest(q),
        low_ms=None if low is None else float(ordered[low - 1]),
        high_ms=None if high is None else float(ordered[high - 1]),
    )


def share_over(values_ms: Values, threshold_ms: float) -> float | None:
    """Return the share of durations over a threshold, failures included; None without durations."""
    ordered = ascending(values_ms)
    return count_over(ordered, threshold_ms) / len(ordered) if len(ordered) else None


def count_over(ordered: npt.NDArray[np.float64], threshold_ms: float) -> int:
    """Return how many of the sorted durations lie over a threshold."""
    return len(ordered) - int(np.searchsorted(ordered, threshold_ms, side="right"))


@lru_cache(maxsize=256)
def fewest(q: float, confidence: float = CONFIDENCE) -> int:
    """Return how many values a percentile needs: P50 6, P95 59, P99 299 (at 99 %: 90 and 459 for the last two).

    For q > 0.5: the smallest n with q**n <= 1 - confidence, from which on the largest value reaches the true percentile.
    """
    if q <= MEDIAN:
        return FEWEST_FOR_MEDIAN
    n = math.ceil(math.log(1 - confidence) / math.log(q))
    return n if q**n <= 1 - confidence else n + 1


@lru_cache(maxsize=4096)
def rank_interval(q: float, n: int, confidence: float = CONFIDENCE) -> tuple[int | None, int | None]:
    """Return the ranks (from 1) between which the true percentile lies, each end wrong with (1 - confidence) / 2 at most.

    None for an end that n values cannot give: as many of them lie below the percentile as the binomial distribution says.
    """
    tail = (1 - confidence) / 2
    below = 0.0  # P(B <= k) while k goes up
    low: int | None = None
    for k in range(n + 1):
        if k and below <= tail:
            low = k  # P(B <= k - 1) <= tail: the k-th value is at most the percentile
        if k and below >= 1 - tail:
            return low, k  # P(B <= k - 1) >= 1 - tail: the k-th value is at least the percentile
        below += binomial(k, n, q)
    return low, None


@lru_cache(maxsize=4096)
def breaches_needed(n: int, *, q: float = 0.99, alpha: float = 0.01) -> int:
    """Return how many of n values over a threshold reject "a share of 1 - q at most is over it" (exact binomial test).

    The smallest k with P(B >= k) <= alpha for B of n tries with chance 1 - q. It may be n + 1: so few never reject.
    """
    over = 1.0  # P(B >= k) while k goes up
    for k in range(n + 2):
        if over <= alpha:
            return k
        over -= binomial(k, n, 1 - q)
    return n + 1


@lru_cache(maxsize=1024)
def needed_to_pass(over: int, *, q: float = 0.99, confidence: float = 0.99) -> int:
    """Return from how many values on, `over` of them over a threshold still prove that its percentile lies under it.

    The smallest n with P(B <= over) <= 1 - confidence for B of n tries with chance 1 - q (early stopping as MLPerf's rules
    have it): 459, 662, 838 for P99 at 99 % with 0, 1, 2 over.
    """
    low, high = over, max(over, 1)
    while _at_most(over, high, 1 - q) > 1 - confidence:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if _at_most(over, middle, 1 - q) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(k: int, n: int, chance: float) -> float:
    return math.fsum(binomial(i, n, chance) for i in range(min(k, n) + 1))


def binomial(k: int, n: int, chance: float) -> float:
    """Return the probability of exactly k of n, computed by logarithms so that no n is too large."""
    if not 0 <= k <= n:
        return 0.0
    chosen = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(chosen + k * math.log(chance) + (n - k) * math.log1p(-chance))
