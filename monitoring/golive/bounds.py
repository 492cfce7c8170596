"""How many requests prove a percentile, and how many of them may be over its threshold: exact binomial rules."""

from typing import Final

from monitoring.percentiles import binomial, needed_to_pass

CONFIDENCE: Final = 0.99
MOST_ALLOWED: Final = 60  # over the threshold, when a number for the next run is suggested
_ROUNDING: Final = 1e-12


def fixed_sizes(q: float, count: int = 6, confidence: float = CONFIDENCE) -> list[int]:
    """Return the numbers of requests that pass with 0, 1, 2, … over the threshold: P99 459, 662, 838, …; P95 90, 130, 165, …

    One of them is chosen before the run. Whoever walks up the list until it passes, passes too often.
    """
    return [needed_to_pass(over, q=q, confidence=confidence) for over in range(count)]


def allowed_over(n: int, q: float, confidence: float = CONFIDENCE) -> int | None:
    """Return how many of n may be over the threshold and still prove the percentile; None when n is too few for any.

    The largest k with P(B <= k) <= 1 - confidence for B of n tries with chance 1 - q.
    """
    reached, allowed = 0.0, None
    for k in range(n + 1):
        reached += binomial(k, n, 1 - q)
        if reached > 1 - confidence + _ROUNDING:
            return allowed
        allowed = k
    return None  # n = 0: there is nothing to be over


def size_for(share: float, q: float, confidence: float = CONFIDENCE) -> int | None:
    """Return the size of a next run that passes on average if this share stays over; None when no sensible one does.

    Raises ValueError for a share outside 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"{share} is no share")
    for over in range(MOST_ALLOWED + 1):
        n = needed_to_pass(over, q=q, confidence=confidence)
        if share * n <= over:
            return n
    return None
