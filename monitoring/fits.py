"""Lines and curves through measured points with the intervals of their slopes, and bounds of shares; nothing but arithmetic."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from monitoring.percentiles import binomial

FEWEST_POINTS: Final = 4  # of a line with an interval that is worth printing
_HALVINGS: Final = 60  # of an interval of 1: far below what a float can tell apart


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope * x by weighted least squares.

    low, high: the 95 % interval of the slope by Student's t. r_squared: the weighted share of the variance that it explains;
    1.0 for points without any variance.
    """

    intercept: float
    slope: float
    low: float
    high: float
    r_squared: float
    n: int

    @property
    def is_rising(self) -> bool:
        """Whether the whole interval of the slope is over 0."""
        return self.low > 0


def t_quantile(p: float, degrees: int) -> float:
    """Return the quantile of Student's t, by the expansion of Cornish and Fisher (within 1 % from 3 degrees on).

    Raises ValueError for p outside (0, 1) and fewer than 1 degree.
    """
    if not 0 < p < 1 or degrees < 1:
        raise ValueError("a quantile of t needs p between 0 and 1, and 1 degree of freedom at least")
    if degrees <= 2:  # where the expansion is far off, there are closed forms
        return math.tan(math.pi * (p - 0.5)) if degrees == 1 else (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def line_through(x: Any, y: Any, weights: Any = None) -> Line | None:
    """Return the line through points; None for fewer than four of them or a single x.

    weights: of the squared residuals; 1 / y**2 suits noise that grows with what is measured. Raises ValueError for values that
    are not finite and weights that are not positive.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    ws = np.ones_like(xs) if weights is None else np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(xs).all() and np.isfinite(ys).all() and (ws > 0).all()):
        raise ValueError("a line goes through finite points with positive weights")
    n = len(xs)
    middle = float(np.average(xs, weights=ws)) if n else 0.0
    spread = float((ws * (xs - middle) ** 2).sum())
    if n < FEWEST_POINTS or spread <= 0:
        return None
    level = float(np.average(ys, weights=ws))
    slope = float((ws * (xs - middle) * (ys - level)).sum()) / spread
    left = float((ws * (ys - level - slope * (xs - middle)) ** 2).sum())
    whole = float((ws * (ys - level) ** 2).sum())
    margin = t_quantile(0.975, n - 2) * math.sqrt(left / (n - 2) / spread)
    r_squared = 1.0 if whole <= 0 else max(1 - left / whole, 0.0)
    return Line(level - slope * middle, slope, slope - margin, slope + margin, r_squared, n)


def rate_upper_bound(count: int, n: int, confidence: float = 0.95) -> float:
    """Return the largest chance that is compatible with `count` of n (Clopper and Pearson, one-sided); 1.0 without tries.

    0 of 299 and 1 of 473 give 1 %. Raises ValueError for a count outside 0 to n.
    """
    if not 0 <= count <= n:
        raise ValueError(f"{count} of {n} is no count")
    if count == n:
        return 1.0
    low, high = count / n, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        reached = math.fsum(binomial(i, n, middle) for i in range(count + 1)) if middle < 1 else 0.0
        low, high = (middle, high) if reached > 1 - confidence else (low, middle)
    return high
