"""Reads of the time-series store: the newest values, and series of any range in a bounded number of points."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isnan
from typing import Literal

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from monitoring.models import LatestSample
from monitoring.store.grid import LEVEL_NAMES, Grid, Retention, grid_for
from monitoring.store.reading import read_series
from monitoring.store.tables import ENGINE, GPU, HOST, KINDS, SubjectKind
from panel.core.clock import now
from panel.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest sample of a subject. at: when it was taken, by the panel's clock; values: every metric of the catalogue."""

    at: datetime
    values: dict[str, float | None]
    clock_event_reasons: int | None
    performance_state: int | None


def latest_for_gpus(*, gpu_ids: Collection[int]) -> dict[int, Latest]:
    """Return the newest sample of each GPU that ever gave one. One query, on the narrow table."""
    return _latest(GPU, gpu_ids)


def latest_for_servers(*, server_ids: Collection[int]) -> dict[int, Latest]:
    """Return the newest sample of each server's host."""
    return _latest(HOST, server_ids)


def latest_for_replicas(*, replica_ids: Collection[int]) -> dict[int, Latest]:
    """Return the newest sample of each replica's engine."""
    return _latest(ENGINE, replica_ids)


def _latest(kind: SubjectKind, subject_ids: Collection[int]) -> dict[int, Latest]:
    if not subject_ids:
        return {}
    # One array instead of thousands of parameters: a list of a whole fleet is twice as quick.
    wanted = LatestSample.objects.filter(kind=kind.code).extra(
        where=["subject_id = ANY(%s)"], params=[list(subject_ids)]
    )
    rows = list(wanted.values_list("subject_id", "at", "clock_event_reasons", "performance_state", "values"))
    values = values_by_name(kind, [row[-1] for row in rows])
    return {
        subject_id: Latest(at, readings, reasons, performance_state)
        for (subject_id, at, reasons, performance_state, _packed), readings in zip(rows, values, strict=True)
    }


def values_by_name(kind: SubjectKind, packed: Sequence[bytes | memoryview]) -> list[dict[str, float | None]]:
    """Return stored values by metric, of many subjects at once; a metric that was added to the catalogue since is None."""
    names = kind.columns
    absent = np.full(len(names), np.nan, dtype="<f4").tobytes()
    joined = b"".join(bytes(one)[: len(absent)] + absent[len(one) :] for one in packed)
    numbers = np.frombuffer(joined, dtype="<f4").reshape(len(packed), len(names))
    table = numbers.astype(object)
    table[np.isnan(numbers)] = None
    return [dict(zip(names, row, strict=True)) for row in table.tolist()]


def named(kind: SubjectKind, numbers: list[float]) -> dict[str, float | None]:
    """Return one row of the catalogue by metric, None for NaN."""
    return {name: None if isnan(number) else number for name, number in zip(kind.columns, numbers, strict=False)}


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one subject: averages and maxima of each bucket, NaN where there was no sample.

    kind: gpu or server for what the catalogue of metrics knows; apps above have series of subjects of their own.
    """

    kind: str
    subject_id: int
    metric: str
    average: NDArray[np.float32]
    maximum: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """Series over one grid: bucket i covers `step_seconds` from `from_ms` + i steps (Unix ms). level: raw, 1m, 5m or 1h."""

    from_ms: int
    step_seconds: int
    points: int
    level: str
    series: list[Series]


@dataclass(frozen=True, slots=True)
class FleetSeries:
    """One metric over many GPUs. average: mean over those that reported, each counting once; reporting: how many did."""

    metric: str
    average: NDArray[np.float32]
    maximum: NDArray[np.float32]
    reporting: NDArray[np.int64]


MAX_CELLS = 4_000_000  # of one answer: subjects × metrics × buckets


def series(
    *,
    kind: Literal["gpu", "server", "replica"],
    subject_ids: Collection[int],
    metrics: Collection[str],
    start: datetime,
    end: datetime,
    points: int,
) -> SeriesResult:
    """Return series of [start, end) in at most `points` buckets, ordered by metric as asked, then by subject.

    At most four queries, whatever the range. Raises InvalidInput for an unknown metric, an empty range or too much at once.
    """
    of_kind = next(one for one in KINDS if one.name == kind)
    columns = _known(of_kind, metrics)
    grid = _grid(start, end, points)
    if len(columns) * len(subject_ids) * grid.buckets > MAX_CELLS:
        raise InvalidInput(
            _("This asks for too many points at once; ask for fewer metrics or a smaller number of points.")
        )
    found: list[Series] = []
    if subject_ids and columns:
        gathered = read_series(of_kind, subject_ids=subject_ids, columns=columns, grid=grid)
        for column, buckets in zip(columns, gathered, strict=True):
            average, maximum = buckets.result()
            for row, subject_id in enumerate(buckets.subject_ids.tolist()):
                found.append(Series(kind, subject_id, column, average[row], maximum[row]))
    return SeriesResult(grid.first_ms, grid.step_ms // 1000, grid.buckets, LEVEL_NAMES[grid.level], found)


def fleet_series(
    *, gpu_ids: Collection[int], metrics: Collection[str], start: datetime, end: datetime, points: int
) -> tuple[SeriesResult, list[FleetSeries]]:
    """Return each metric over all these GPUs together, beside the grid (a result without series of its own).

    A GPU that did not report in a bucket does not count there, neither as 0 nor in the divisor.
    """
    columns = _known(GPU, metrics)
    grid = _grid(start, end, points)
    together: list[FleetSeries] = []
    if gpu_ids and columns:
        gathered = read_series(GPU, subject_ids=gpu_ids, columns=columns, grid=grid)
        for column, buckets in zip(columns, gathered, strict=True):
            average, maximum = buckets.result()
            reports = ~np.isnan(average)
            reporting = reports.sum(axis=0)
            total = np.where(reports, average, 0).sum(axis=0, dtype=np.float64)
            mean = np.divide(total, reporting, out=np.full(grid.buckets, np.nan), where=reporting > 0)
            highest = np.where(reporting > 0, np.fmax.reduce(maximum, axis=0), np.float32(np.nan))
            together.append(FleetSeries(column, mean.astype(np.float32), highest, reporting))
    return SeriesResult(grid.first_ms, grid.step_ms // 1000, grid.buckets, LEVEL_NAMES[grid.level], []), together


def _known(kind: SubjectKind, metrics: Collection[str]) -> list[str]:
    columns = list(dict.fromkeys(metrics))
    for column in columns:
        if column not in kind.columns:
            raise InvalidInput(_("There is no metric “%(name)s”.") % {"name": column[:100]}, field="metrics")
    return columns


def _grid(start: datetime, end: datetime, points: int) -> Grid:
    retention = Retention(
        raw_ms=settings.RAW_RETENTION_HOURS * 3_600_000, minute_ms=settings.MINUTE_RETENTION_DAYS * 86_400_000
    )
    try:
        return grid_for(
            start_ms=_unix_ms(start), end_ms=_unix_ms(end), points=points, now_ms=_unix_ms(now()), retention=retention
        )
    except (ValueError, OverflowError):
        raise InvalidInput(_("The range must end after it starts and have at least one point."), field="to") from None


_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _unix_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
