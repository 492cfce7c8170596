"""What a length sweep says: how much of a usual request's time grows with its prompt."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from monitoring.diagnosis.columns import Array
from monitoring.fits import line_through, t_quantile

FEWEST_LENGTHS: Final = 3
FEWEST_REPEATS: Final = 4
LEAST_R_SQUARED: Final = 0.9
LEAST_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class LengthFit:
    """Latency against prompt tokens. intercept_ms: what a request without a prompt would take. slope_ms: per token, with its 95 %
    interval. is_quadratic: whether it bends upwards beyond doubt. share: of the part that grows, at the typical length.
    """

    intercept_ms: float
    slope_ms: float
    slope_low_ms: float
    slope_high_ms: float
    r_squared: float
    is_quadratic: bool
    share: float

    @property
    def is_prefill(self) -> bool:
        """Whether the prompt explains most of a usual request."""
        return self.slope_low_ms > 0 and self.r_squared > LEAST_R_SQUARED and self.share > LEAST_SHARE


def fits_of(
    lengths: Mapping[int, Sequence[float]], typical: int, generator: np.random.Generator, resamples: int
) -> list[LengthFit]:
    """Return the fit as measured and one per resample (within each length); [] for fewer than 3 lengths with 4 repeats.

    Squares are weighted by 1 / median**2 of their length, because noise grows with latency. Curve: latency = a + b n + c n**2
    where the interval of c is over 0, else the line alone.
    """
    groups = {
        n: np.asarray(found, dtype=np.float64) for n, found in sorted(lengths.items()) if len(found) >= FEWEST_REPEATS
    }
    if len(groups) < FEWEST_LENGTHS:
        return []
    x = np.concatenate([np.full(len(found), float(n)) for n, found in groups.items()])
    weights = np.concatenate([np.full(len(found), max(np.median(found), 1e-6) ** -2.0) for found in groups.values()])
    measured = np.concatenate(list(groups.values()))
    is_quadratic = _bends(x, measured, weights)
    tries = [measured, *(_drawn(groups.values(), generator) for _ in range(resamples))]
    found = [_fit(x, y, weights, typical, is_quadratic=is_quadratic) for y in tries]
    return [fit for fit in found if fit is not None]


def _drawn(groups: Iterable[Array], generator: np.random.Generator) -> Array:
    return np.concatenate([found[generator.integers(0, len(found), len(found))] for found in groups])


def _fit(x: Array, y: Array, weights: Array, typical: int, *, is_quadratic: bool) -> LengthFit | None:
    line = line_through(x, y, weights)
    if line is None:  # one length alone, which was refused before
        return None
    intercept, r_squared, at_typical = line.intercept, line.r_squared, line.intercept + line.slope * typical
    if is_quadratic:
        coefficients, left, _ = _curve(x, y, weights)
        level = float(np.average(y, weights=weights))
        whole = float((weights * (y - level) ** 2).sum())
        intercept, r_squared = float(coefficients[0]), 1.0 if whole <= 0 else max(1 - left / whole, 0.0)
        at_typical = float(coefficients @ np.array([1.0, typical, float(typical) ** 2]))
    share = min(max(1 - max(intercept, 0.0) / at_typical, 0.0), 1.0) if at_typical > 0 else 0.0
    return LengthFit(intercept, line.slope, line.low, line.high, r_squared, is_quadratic, share)


def _bends(x: Array, y: Array, weights: Array) -> bool:
    coefficients, left, error = _curve(x, y, weights)
    return bool(coefficients[2] - t_quantile(0.975, len(x) - 3) * math.sqrt(max(left, 0.0)) * error > 0)


def _curve(x: Array, y: Array, weights: Array) -> tuple[Array, float, float]:
    """Return a, b, c; the weighted squares that are left; and the standard error of c for squares of 1."""
    scale = float(x.max())
    root = np.sqrt(weights)
    design = np.vander(x / scale, 3, increasing=True) * root[:, None]
    inverse = np.linalg.pinv(design.T @ design)
    found = inverse @ (design.T @ (y * root))
    left = float(((y * root - design @ found) ** 2).sum())
    powers = np.array([1.0, scale, scale**2])
    return found / powers, left, math.sqrt(inverse[2, 2] / (len(x) - 3)) / scale**2
