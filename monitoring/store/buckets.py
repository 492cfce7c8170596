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
    """Weighted sums, weights and maxima of one metric, subject by subject. What lies outside the grid is left out."""

    def __init__(self, grid: Grid, subject_ids: Collection[int]) -> None:
        self.grid = grid
        self.subject_ids = np.sort(np.fromiter(set(subject_ids), dtype=np.int64))
        size = len(self.subject_ids) * grid.buckets
        self._total = np.zeros(size)
        self._weight = np.zeros(size)
        self._maximum = np.full(size, -np.inf, dtype=np.float32)

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
        if starts_ms.min() < start_ms:
            weight[starts_ms[:, None] + np.arange(slots) * slot_ms < start_ms] = 0
        total = cells["average"] * weight
        maximum = cells["maximum"]
        factor = max(1, min(slots, self.grid.step_ms // slot_ms))
        if factor > 1:  # steps divide a row's span, or are multiples of it
            shape = (len(subjects), slots // factor, factor)
            maximum = np.where(weight > 0, maximum, np.float32(-np.inf)).reshape(shape).max(axis=2)
            weight, total = weight.reshape(shape).sum(axis=2), total.reshape(shape).sum(axis=2)
        offsets = np.arange(0, slots, factor) * slot_ms
        buckets = (starts_ms[:, None] + offsets - self.grid.first_ms) // self.grid.step_ms
        flat = self.places(subjects)[:, None] * self.grid.buckets + buckets
        inside = (buckets >= 0) & (buckets < self.grid.buckets) & (weight > 0)
        is_unique = self.grid.step_ms <= slots * slot_ms  # else several rows fall into one bucket
        self._add(flat[inside], total[inside], weight[inside], maximum[inside], is_unique=is_unique)

    def add_samples(self, subjects: NDArray[np.int32], at_ms: NDArray[np.int64], values: Singles) -> None:
        """Add samples; NaN is none. On a grid of samples they must be in order of subject and time."""
        some = ~np.isnan(values)
        rows, times, values = self.places(subjects[some]), at_ms[some], values[some]
        buckets = (times - self.grid.first_ms) // self.grid.step_ms
        inside = (buckets >= 0) & (buckets < self.grid.buckets)
        flat = rows[inside] * self.grid.buckets + buckets[inside]
        self._add(flat, values[inside].astype(np.float64), np.ones(len(flat)), values[inside])
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
        flat = rows[source[inside]] * self.grid.buckets + at[inside]
        self._add(flat, held.astype(np.float64), np.ones(len(held)), held, is_unique=True)

    def _add(
        self,
        flat: NDArray[np.intp],
        total: NDArray[np.float64],
        weight: NDArray[np.float64],
        maximum: Singles,
        *,
        is_unique: bool = False,
    ) -> None:
        """Add to the buckets at these flat places; is_unique: none is named twice, which is quicker."""
        if is_unique:
            self._total[flat] += total
            self._weight[flat] += weight
            self._maximum[flat] = np.maximum(self._maximum[flat], maximum)
        else:
            np.add.at(self._total, flat, total)
            np.add.at(self._weight, flat, weight)
            np.maximum.at(self._maximum, flat, maximum)

    def _stand_late(self, weight: NDArray[np.float64]) -> None:
        """Fill a minute that is empty only because its sample came a moment late, with the one before.

        A card that is sampled once a minute has one sample in each minute, until one comes at the end of a minute and the
        next at the beginning of the one after the next. Cells of minutes know only how many fell into them, so this is
        believed where the two minutes on both sides have one each; a card that is sampled more often has more.
        """
        single = np.pad(weight == 1, ((0, 0), (2, 2)), constant_values=True)  # what lies outside says nothing
        around = single[:, :-4] & single[:, 1:-3] & single[:, 3:-1] & single[:, 4:]
        around[:, [0, -1]] = False  # a chart begins and ends with what there is
        at = np.flatnonzero(around & (weight == 0))
        self._add(at, self._total[at - 1], self._weight[at - 1], self._maximum[at - 1], is_unique=True)

    def result(self) -> tuple[Singles, Singles]:
        """Return averages and maxima, (subjects × buckets), NaN where nothing fell."""
        shape = (len(self.subject_ids), self.grid.buckets)
        if self.grid.step_ms == LONGEST_INTERVAL_MS and self.grid.level != RAW:
            self._stand_late(self._weight.reshape(shape))
        some = self._weight > 0
        average = np.divide(self._total, self._weight, out=np.full(len(some), np.nan), where=some)
        maximum = np.where(some, self._maximum, np.float32(np.nan))
        return average.astype(np.float32).reshape(shape), maximum.reshape(shape)
