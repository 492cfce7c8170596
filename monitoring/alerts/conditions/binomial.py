"""How many of n samples must lie over a limit before chance does not explain it: exact binomial tails."""

from functools import lru_cache
from math import exp, lgamma, log


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@lru_cache(maxsize=1024)
def least_over(n: int, *, share: float, alpha: float) -> int:
    """Return the smallest k with P(X ≥ k) ≤ alpha, X binomial (n, share): that many over reject "at most `share` are over"."""
    tail = 0.0
    for k in range(n, -1, -1):
        tail += exp(_log_choose(n, k) + k * log(share) + (n - k) * log(1 - share))
        if tail > alpha:
            return k + 1
    return 0
