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
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from endpoints.histograms import Histogram, has_enough, quantile
from endpoints.models import Endpoint, Gateway
from monitoring.selectors import Series, SeriesResult
from panel.core.errors import InvalidInput

Values = NDArray[np.float64]
# Gateways tell every 10 s: no bucket is shorter, and each step is a whole number of the one before or divides a day.
STEPS: Final = (10, 30, 60, 120, 300, 900, 1_800, 3_600, 7_200)
MOST_BUCKETS: Final = 120
# Adding up the histograms of a day takes about a second.
LONGEST_TIMES: Final = timedelta(hours=25)
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
    SELECT {_BUCKET}, SUM(t.limited), SUM(t.tokens), extract(epoch FROM MIN(t.from_at)), extract(epoch FROM MAX(t.from_at))
    FROM endpoints_endpointtraffic t {_WHERE} GROUP BY 1
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
        return cls(first, step, max(ceil((end.timestamp() - first) / step), 1))

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


@dataclass(frozen=True, slots=True)
class ToldTime:
    """The time in which no row means no request, Unix seconds: from the first gateway to the newest whole span told.

    Before there was a gateway, and since all are silent, nothing is known.
    """

    begin: float
    end: float

    def seconds(self, grid: Grid) -> Values:
        """Return how much of each bucket it covers; 0 where nothing is known."""
        edges = grid.edges()
        covered: Values = np.minimum(edges + grid.step, self.end) - np.maximum(edges, self.begin)
        return np.clip(covered, 0.0, grid.step)


def told_time(*, made_at: datetime, rows: tuple[float, float] | None = None) -> ToldTime:
    """Return it for an endpoint. rows: when the first and the last stored span of it begin. One query."""
    known = Gateway.objects.aggregate(first=Min("created_at"), newest=Max("reported_at"))
    if known["newest"] is None:
        return ToldTime(0.0, 0.0) if rows is None else ToldTime(rows[0], rows[1] + STEPS[0])
    begin, end = known["first"].timestamp(), known["newest"].timestamp() // STEPS[0] * STEPS[0]
    if rows is not None:
        begin, end = min(begin, rows[0]), max(end, rows[1] + STEPS[0])
    return ToldTime(max(begin, made_at.timestamp()), end)


def traffic_series(
    *, endpoint_id: int, metrics: Collection[str], start: datetime, end: datetime, points: int
) -> SeriesResult:
    """Return series of METRICS over [start, end). Six queries. Raises InvalidInput for percentiles of more than LONGEST_TIMES.

    Counts are per second of a bucket; a percentile is missing where its bucket has too few requests for it
    (`histograms.ENOUGH`), `max` is the slowest request. Where nothing was told the value is NaN, which is not zero.
    """
    parts = [part for part in PARTS if any(name.startswith(part) for name in metrics)]
    if parts and end - start > LONGEST_TIMES:
        raise InvalidInput(_("Percentiles are told for a day at most: ask day by day."), field="from")
    grid = Grid.of(start, end, points)
    found = _counts(endpoint_id, grid)
    if parts:
        found |= _times(endpoint_id, grid, parts)
    blank = (grid.blank(), grid.blank())
    series = [
        Series("endpoint", endpoint_id, name, mean.astype(np.float32), peak.astype(np.float32))
        for name in metrics
        for mean, peak in [found.get(name, blank)]
    ]
    return SeriesResult(grid.start * 1000, grid.step, grid.points, "raw", series)


def _counts(endpoint_id: int, grid: Grid) -> dict[str, tuple[Values, Values]]:
    between = [grid.start, grid.step, endpoint_id, *grid.span]
    sums = list(_rows(_SUMS, between))
    made_at = Endpoint.objects.values_list("created_at", flat=True).get(pk=endpoint_id)
    stored = (min(float(row[3]) for row in sums), max(float(row[4]) for row in sums)) if sums else None
    seconds = told_time(made_at=made_at, rows=stored).seconds(grid)
    quiet = np.where(seconds > 0, 0.0, np.nan)
    columns = {name: quiet.copy() for name in COUNTS}
    for at, limited, tokens, *_span in sums:
        columns["limited_per_second"][at] = float(limited)
        columns["tokens_per_second"][at] = np.nan if tokens is None else float(tokens)
    for at, status, number in _rows(_STATUSES, between):
        name = f"requests_{status if status in CLASSES else f'{str(status)[:1]}xx'}_per_second"
        if name in columns:
            columns[name][at] += float(number)
    columns = {name: column / np.maximum(seconds, STEPS[0]) for name, column in columns.items()}
    found = {name: (column, column) for name, column in columns.items()}
    found[IN_FLIGHT] = _flying(between, seconds)
    return found


def _flying(between: list[Any], seconds: Values) -> tuple[Values, Values]:
    mean = np.where(seconds > 0, 0.0, np.nan)
    peak = mean.copy()
    for at, total, most in _rows(_FLYING, between):
        # Spans without a row had nothing under way.
        spans = max(seconds[at] / STEPS[0], 1.0)
        mean[at] = np.nan if total is None else float(total) / spans
        peak[at] = np.nan if most is None else float(most)
    return mean, np.fmax(mean, peak)


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
        numbers[pk][at] = float(requests)
    told = told_time(made_at=start)
    found = {}
    for pk, made_at in endpoints.items():
        seconds = ToldTime(max(told.begin, made_at.timestamp()), told.end).seconds(grid)
        column = np.where(seconds > 0, 0.0, np.nan)
        for at, number in numbers[pk].items():
            column[at] = number / max(seconds[at], STEPS[0])
        found[pk] = [None if np.isnan(each) else round(float(each), 3) for each in column]
    return found


def _rows(sql: str, parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(parameters))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
