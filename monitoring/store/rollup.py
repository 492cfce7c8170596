"""Average, maximum, minimum and count of samples by slot, and of slots by larger slots. Pure, on whole arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of slots. Each array ends in (slots × metrics); leading axes are the caller's (subjects).

    Where count is 0 the others are 0 and mean nothing.
    """

    average: Singles
    maximum: Singles
    minimum: Singles
    count: NDArray[np.uint16]


def empty(*shape: int) -> Stats:
    """Return statistics of nothing."""
    average, maximum, minimum = (np.zeros(shape, dtype=np.float32) for _ in range(3))
    return Stats(average, maximum, minimum, np.zeros(shape, dtype=np.uint16))


def roll(slots: NDArray[np.intp], values: Singles, *, total: int) -> Stats:
    """Return the statistics of `total` slots, (total × metrics).

    slots: which slot each row of `values` (rows × metrics, NaN for none) falls into.
    """
    stats = empty(total, values.shape[1])
    if not len(slots):
        return stats
    order = np.argsort(slots, kind="stable")
    ordered, rows = slots[order], values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    is_none = np.isnan(rows)
    count = np.add.reduceat(~is_none, starts, axis=0, dtype=np.int64)
    total_value = np.add.reduceat(np.where(is_none, 0.0, rows.astype(np.float64)), starts, axis=0)
    some = count > 0
    filled = ordered[starts]
    stats.average[filled] = np.divide(total_value, count, out=np.zeros_like(total_value), where=some)
    stats.maximum[filled] = np.where(some, np.maximum.reduceat(np.where(is_none, -np.inf, rows), starts, axis=0), 0)
    stats.minimum[filled] = np.where(some, np.minimum.reduceat(np.where(is_none, np.inf, rows), starts, axis=0), 0)
    stats.count[filled] = np.minimum(count, 65_535)
    return stats


def combine(stats: Stats, factor: int) -> Stats:
    """Merge each `factor` neighbouring slots into one: averages weighted by their counts, maximum of maxima.

    Raises ValueError when the slots do not divide evenly.
    """
    *lead, slots, metrics = stats.count.shape
    if slots % factor:
        raise ValueError(f"{slots} slots do not divide by {factor}.")
    average, maximum, minimum, count = (
        array.reshape(*lead, slots // factor, factor, metrics)
        for array in (stats.average, stats.maximum, stats.minimum, stats.count)
    )
    weight = count.sum(axis=-2, dtype=np.int64)
    some = count > 0
    total = np.sum(average * count.astype(np.float64), axis=-2)
    merged = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0).astype(np.float32)
    highest = np.max(maximum, axis=-2, where=some, initial=-np.inf)
    lowest = np.min(minimum, axis=-2, where=some, initial=np.inf)
    return Stats(
        merged,
        np.where(weight > 0, highest, 0).astype(np.float32),
        np.where(weight > 0, lowest, 0).astype(np.float32),
        np.minimum(weight, 65_535).astype(np.uint16),
    )
