"""Where slots and samples of any level are gathered into the buckets of a chart. Pure, on whole arrays."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from monitoring.store.grid import RAW, Grid

Singles = NDArray[np.float32]

LONGEST_INTERVAL_MS = 60_000  # of sampling; see fleet.agent


def is_missing(rows: NDArray[np.intp], times: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of each step between neighbouring samples whether something is missing in it.

    It is when the step is 1.5 times longer than both steps beside it, which allows for jitter and for a change of the
    interval, or than the longest interval there is. rows: which series each sample belongs to.
    """
    steps = (times[1:] - times[:-1]).astype(np.float64)
    steps[rows[1:] != rows[:-1]] = 0.0
    beside = np.maximum(np.r_[0.0, steps[:-1]], np.r_[steps[1:], 0.0])
    beside[beside == 0.0] = np.inf  # two samples alone: nothing to compare with but the longest interval
    missing: NDArray[np.bool_] = steps > 1.5 * np.minimum(beside, LONGEST_INTERVAL_MS)
    return missing


class Buckets:
    """Weighted sums, weights and maxima of one metric, (subjects × buckets). What lies outside the grid is left out."""

    def __init__(self, grid: Grid, subject_ids: Collection[int]) -> None:
        self.grid = grid
        self.subject_ids = np.sort(np.fromiter(set(subject_ids), dtype=np.int64))
        shape = (len(self.subject_ids), grid.buckets)
        self._total = np.zeros(shape)
        self._weight = np.zeros(shape)
        self._maximum = np.full(shape, -np.inf, dtype=np.float32)

    def places(self, subjects: NDArray[np.int32]) -> NDArray[np.intp]:
        """Return the row of each subject; all must be among `subject_ids`."""
        return np.searchsorted(self.subject_ids, subjects)

    def add_cells(
        self,
        subjects: NDArray[np.int32],
        starts_ms: NDArray[np.int64],
        cells: NDArray[np.void],
        level: int,
        *,
        start_ms: int,
    ) -> None:
        """Add rollup rows: `cells` as `rows.cell_dtype`, slots of `level` seconds from each row's start.

        Slots before `start_ms` are left out: a coarser level told of them.
        """
        if not len(subjects):
            return
        slot_ms = level * 1000
        slots = cells["count"].shape[1]
        weight = cells["count"].astype(np.float64)
        weight[starts_ms[:, None] + np.arange(slots) * slot_ms < start_ms] = 0
        total = cells["average"] * weight
        maximum = np.where(weight > 0, cells["maximum"], np.float32(-np.inf))
        factor = max(1, min(slots, self.grid.step_ms // slot_ms))
        if factor > 1:  # steps divide a row's span, or are multiples of it
            shape = (len(subjects), slots // factor, factor)
            weight, total = weight.reshape(shape).sum(axis=2), total.reshape(shape).sum(axis=2)
            maximum = maximum.reshape(shape).max(axis=2)
        offsets = np.arange(0, slots, factor) * slot_ms
        buckets = (starts_ms[:, None] + offsets - self.grid.first_ms) // self.grid.step_ms
        rows = np.broadcast_to(self.places(subjects)[:, None], buckets.shape)
        inside = (buckets >= 0) & (buckets < self.grid.buckets) & (weight > 0)
        self._add(rows[inside], buckets[inside], total[inside], weight[inside], maximum[inside])

    def add_samples(self, subjects: NDArray[np.int32], at_ms: NDArray[np.int64], values: Singles) -> None:
        """Add samples; NaN is none. On a grid of samples they must be in order of subject and time."""
        some = ~np.isnan(values)
        rows, times, values = self.places(subjects[some]), at_ms[some], values[some]
        buckets = (times - self.grid.first_ms) // self.grid.step_ms
        inside = (buckets >= 0) & (buckets < self.grid.buckets)
        self._add(
            rows[inside], buckets[inside], values[inside].astype(np.float64), np.ones(int(inside.sum())), values[inside]
        )
        if self.grid.level == RAW:
            self._hold(rows, times, buckets, values)

    def _hold(
        self, rows: NDArray[np.intp], times: NDArray[np.int64], buckets: NDArray[np.int64], values: Singles
    ) -> None:
        """Let a sample stand in the empty buckets up to the next one, unless samples are missing between them.

        Steps may be shorter than the interval of sampling, and a sample that comes a little late leaves a bucket empty:
        neither is a gap. See `is_missing`.
        """
        if len(times) < 2:
            return
        stands = (rows[1:] == rows[:-1]) & ~is_missing(rows, times)
        empty = np.where(stands, np.maximum(buckets[1:] - buckets[:-1] - 1, 0), 0)
        source = np.repeat(np.arange(len(empty)), empty)
        behind = np.arange(len(source)) - np.repeat(np.cumsum(empty) - empty, empty)
        at = buckets[source] + 1 + behind
        inside = (at >= 0) & (at < self.grid.buckets)
        held = values[source[inside]]
        self._add(rows[source[inside]], at[inside], held.astype(np.float64), np.ones(len(held)), held)

    def _add(
        self,
        rows: NDArray[np.intp],
        buckets: NDArray[np.int64],
        total: NDArray[np.float64],
        weight: NDArray[np.float64],
        maximum: Singles,
    ) -> None:
        flat = rows * self.grid.buckets + buckets
        size = self._weight.size
        self._total += np.bincount(flat, weights=total, minlength=size).reshape(self._total.shape)
        self._weight += np.bincount(flat, weights=weight, minlength=size).reshape(self._weight.shape)
        np.maximum.at(self._maximum.reshape(-1), flat, maximum)

    def result(self) -> tuple[Singles, Singles]:
        """Return averages and maxima, NaN where nothing fell."""
        some = self._weight > 0
        average = np.divide(self._total, self._weight, out=np.full(self._total.shape, np.nan), where=some)
        return average.astype(np.float32), np.where(some, self._maximum, np.float32(np.nan))
