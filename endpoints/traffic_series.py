"""Traffic of one endpoint over time: buckets of a grid, added up over gateways; percentiles from each bucket's own histogram."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, Final

import numpy as np
from django.db import connection
from django.db.models import Max, Min
from numpy.typing import NDArray

from endpoints.histograms import Histogram, has_enough, quantile
from endpoints.models import Gateway
from monitoring.selectors import Series, SeriesResult

Values = NDArray[np.float64]
# Gateways tell every 10 s: no bucket is shorter, and each step is a whole number of the one before or divides a day.
STEPS: Final = (10, 30, 60, 120, 300, 900, 1_800, 3_600, 7_200)
MOST_BUCKETS: Final = 120
SHARES: Final[Mapping[str, float]] = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
PARTS: Final = ("queue", "first_byte", "total")
# Classes of outcomes as gateways tell them (`fleet.agent.orders.EndpointTraffic`), and the metric of each.
CLASSES: Final = ("2xx", "3xx", "4xx", "5xx", "cut", "left")
COUNTS: Final = (*(f"requests_{name}_per_second" for name in CLASSES), "limited_per_second", "tokens_per_second")
TIMES: Final = tuple(f"{part}_{name}_ms" for part in PARTS for name in (*SHARES, "max"))
IN_FLIGHT: Final = "in_flight"
METRICS: Final = (*COUNTS, *TIMES, IN_FLIGHT)

_BUCKET: Final = "floor((extract(epoch FROM t.from_at) - %s) / %s)::int"
_WHERE: Final = "WHERE t.endpoint_id = %s AND t.from_at >= %s AND t.from_at < %s"
_SUMS: Final = f"""
    SELECT {_BUCKET}, SUM(t.limited), SUM(t.tokens) FROM endpoints_endpointtraffic t {_WHERE} GROUP BY 1
"""  # noqa: S608  # constants of this module
_STATUSES: Final = f"""
    SELECT {_BUCKET}, s.key, SUM(s.value::bigint)
    FROM endpoints_endpointtraffic t CROSS JOIN LATERAL jsonb_each_text(t.statuses) s {_WHERE} GROUP BY 1, 2
"""  # noqa: S608
_FLYING: Final = f"""
    SELECT floor((extract(epoch FROM from_at) - %s) / %s)::int, SUM(flying), MAX(flying) FROM (
        SELECT t.from_at, SUM(t.in_flight) AS flying FROM endpoints_endpointtraffic t {_WHERE} GROUP BY 1
    ) spans GROUP BY 1
"""  # noqa: S608
_HISTOGRAMS: Final = f"""
    SELECT {_BUCKET}, h.part, b.key::int, SUM(b.value::bigint)
    FROM endpoints_endpointtraffic t
    CROSS JOIN LATERAL (VALUES ('queue', t.queue), ('first_byte', t.first_byte), ('total', t.total)) h(part, value)
    CROSS JOIN LATERAL jsonb_each_text(COALESCE(h.value -> 'buckets', '{{}}')) b
    {_WHERE} AND h.part = ANY(%s) GROUP BY 1, 2, 3
"""  # noqa: S608
_RATES: Final = f"""
    SELECT t.endpoint_id, {_BUCKET}, SUM(t.requests) FROM endpoints_endpointtraffic t
    WHERE t.endpoint_id = ANY(%s) AND t.from_at >= %s AND t.from_at < %s GROUP BY 1, 2
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Grid:
    """Buckets of `step` seconds; bucket i begins at `start` + i steps (Unix seconds, whole steps)."""

    start: int
    step: int
    points: int

    @classmethod
    def of(cls, start: datetime, end: datetime, points: int) -> "Grid":
        """Return the finest grid over a time with at most so many buckets (and never more than MOST_BUCKETS)."""
        seconds = max((end - start).total_seconds(), 1.0)
        most = max(min(points, MOST_BUCKETS), 1)
        step = next((each for each in STEPS if seconds / each <= most), ceil(seconds / most / 3600) * 3600)
        first = int(start.timestamp()) // step * step
        return cls(first, step, max(-(-(int(end.timestamp()) - first) // step), 1))

    @property
    def span(self) -> tuple[datetime, datetime]:
        """Return what it covers."""
        begin = datetime.fromtimestamp(self.start, UTC)
        return begin, begin + timedelta(seconds=self.step * self.points)

    def edges(self) -> Values:
        """Return when each bucket begins, Unix seconds."""
        edges: Values = self.start + np.arange(self.points, dtype=np.float64) * self.step
        return edges

    def blank(self, value: float = np.nan) -> Values:
        """Return a column of one value."""
        return np.full(self.points, value)


def told_span(*, made_at: datetime, first: datetime | None) -> tuple[datetime, datetime] | None:
    """Return the time in which no row means no request: from the first gateway (or row) to the newest report. One query.

    Before there was a gateway, and since all are silent, nothing is known.
    """
    known = Gateway.objects.aggregate(first=Min("created_at"), newest=Max("reported_at"))
    if known["newest"] is None:
        return None
    return max(min(known["first"], first or known["first"]), made_at), known["newest"]


def traffic_series(
    *, endpoint_id: int, made_at: datetime, metrics: Collection[str], start: datetime, end: datetime, points: int
) -> SeriesResult:
    """Return series of METRICS over [start, end). Five queries.

    Counts are per second of a bucket; a percentile is missing where its bucket has too few requests for it
    (`histograms.ENOUGH`), `max` is the slowest request. Where nothing was told the value is NaN, which is not zero.
    """
    grid = Grid.of(start, end, points)
    found = _counts(endpoint_id, grid, made_at)
    if any(name in TIMES for name in metrics):
        found |= _times(endpoint_id, grid, [part for part in PARTS if any(name.startswith(part) for name in metrics)])
    blank = (grid.blank(), grid.blank())
    series = [
        Series("endpoint", endpoint_id, name, mean.astype(np.float32), peak.astype(np.float32))
        for name in metrics
        for mean, peak in [found.get(name, blank)]
    ]
    return SeriesResult(grid.start * 1000, grid.step, grid.points, "raw", series)


def _counts(endpoint_id: int, grid: Grid, made_at: datetime) -> dict[str, tuple[Values, Values]]:
    between = [grid.start, grid.step, endpoint_id, *grid.span]
    sums = {row[0]: row[1:] for row in _rows(_SUMS, between)}
    first = datetime.fromtimestamp(grid.start + min(sums) * grid.step, UTC) if sums else None
    quiet = _quiet(grid, told_span(made_at=made_at, first=first))
    columns = {name: quiet.copy() for name in COUNTS}
    for at, (limited, tokens) in sums.items():
        for name in COUNTS:
            columns[name][at] = 0.0
        columns["limited_per_second"][at] = float(limited) / grid.step
        columns["tokens_per_second"][at] = np.nan if tokens is None else float(tokens) / grid.step
    for at, status, number in _rows(_STATUSES, between):
        name = f"requests_{status if status in CLASSES else f'{str(status)[:1]}xx'}_per_second"
        if name in columns:
            columns[name][at] += float(number) / grid.step
    found = {name: (column, column) for name, column in columns.items()}
    found[IN_FLIGHT] = _flying(between, grid, quiet)
    return found


def _quiet(grid: Grid, told: tuple[datetime, datetime] | None) -> Values:
    """Return zeros where gateways told and NaN elsewhere."""
    column = grid.blank()
    if told is not None:
        edges = grid.edges()
        column[(edges + grid.step > told[0].timestamp()) & (edges <= told[1].timestamp())] = 0.0
    return column


def _flying(between: list[Any], grid: Grid, quiet: Values) -> tuple[Values, Values]:
    mean, peak = quiet.copy(), quiet.copy()
    for at, total, most in _rows(_FLYING, between):
        # Spans without a row had nothing under way.
        mean[at] = np.nan if total is None else float(total) / (grid.step / STEPS[0])
        peak[at] = np.nan if most is None else float(most)
    return mean, peak


def _times(endpoint_id: int, grid: Grid, parts: list[str]) -> dict[str, tuple[Values, Values]]:
    between = [grid.start, grid.step, endpoint_id, *grid.span, parts]
    buckets: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for at, part, key, number in _rows(_HISTOGRAMS, between):
        buckets[part, at][key] = int(number)
    columns: dict[str, Values] = {}
    for (part, at), counts in buckets.items():
        histogram = Histogram(sum(counts.values()), 0.0, counts)
        for name, share in (*SHARES.items(), ("max", 1.0)):
            column = columns.setdefault(f"{part}_{name}_ms", grid.blank())
            value = quantile(histogram, share) if name == "max" or has_enough(histogram, share) else None
            column[at] = np.nan if value is None else value
    return {name: (column, column) for name, column in columns.items()}


def request_rates(
    *, endpoints: Mapping[int, datetime], start: datetime, end: datetime, points: int
) -> dict[int, list[float | None]]:
    """Return requests per second of endpoints (by id, when each was made) for small curves. Two queries however many."""
    grid = Grid.of(start, end, points)
    numbers: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for pk, at, requests in _rows(_RATES, [grid.start, grid.step, list(endpoints), *grid.span]):
        numbers[pk][at] = float(requests) / grid.step
    told = told_span(made_at=start, first=None)
    found = {}
    for pk, made_at in endpoints.items():
        column = _quiet(grid, told and (max(told[0], made_at), told[1]))
        for at, rate in numbers[pk].items():
            column[at] = rate
        found[pk] = [None if np.isnan(each) else round(float(each), 3) for each in column]
    return found


def _rows(sql: str, parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(parameters))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
