"""Percentiles over more than single results are kept for: from hourly histograms, merged without loss, right to 1.1 %."""

import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from monitoring.histograms import LogHistogram, merged
from monitoring.percentiles import Percentile, fewest, rank_interval
from monitoring.probing.models import ProbeHour
from monitoring.probing.reading import QUANTILES, Latency, Vantage
from monitoring.probing.tables import CONNECTIONS, KEPT_DAYS, METRICS

HOUR_SECONDS: Final = 3600
MANY: Final = 20_000  # from so many on ranks are not counted one by one
DEVIATIONS: Final = 1.96
Hours = dict[Vantage, list[tuple[datetime, LogHistogram]]]


def are_needed(start: datetime, at: datetime) -> bool:
    """Say whether a range begins before single results are sure to be kept."""
    return start < at - timedelta(days=KEPT_DAYS - 1)


def _hours(probe_id: int, metric: str, start: datetime, end: datetime) -> Hours:
    """Return the closed hours of a range for each place and connection, the oldest first. One query."""
    rows = ProbeHour.objects.filter(
        probe_id=probe_id, metric=METRICS.index(metric), hour_at__gte=start, hour_at__lt=end
    ).order_by("hour_at")
    found: defaultdict[Vantage, list[tuple[datetime, LogHistogram]]] = defaultdict(list)
    for row in rows.iterator(chunk_size=2_000):
        found[row.server_id, CONNECTIONS[row.connection]].append((row.hour_at, LogHistogram.from_json(row.histogram)))
    return dict(sorted(found.items()))


def percentiles_of(histogram: LogHistogram, qs: Iterable[float] = QUANTILES) -> list[Percentile]:
    """Return percentiles with their 95 % intervals by ranks; each value is off by 1.1 % at most."""
    return [_percentile(histogram, q) for q in qs]


def _percentile(histogram: LogHistogram, q: float) -> Percentile:
    n = histogram.count
    if not n:
        return Percentile(q, 0, None, is_enough=False, low_ms=None, high_ms=None)
    low, high = rank_interval(q, n) if n <= MANY else _ranks_of_many(q, n)
    return Percentile(
        q=q,
        n=n,
        value_ms=histogram.quantile_ms(q),
        is_enough=n >= fewest(q),
        low_ms=_at_rank(histogram, low),
        high_ms=_at_rank(histogram, high),
    )


def _ranks_of_many(q: float, n: int) -> tuple[int, int]:
    """Return the 95 % interval of ranks by the normal distribution, which is exact enough for so many."""
    spread = DEVIATIONS * math.sqrt(n * q * (1 - q))
    return max(math.floor(n * q - spread), 1), min(math.ceil(n * q + spread) + 1, n)


def _at_rank(histogram: LogHistogram, rank: int | None) -> float | None:
    return None if rank is None else histogram.quantile_ms((rank - 0.5) / histogram.count)


def latency(
    *, probe_id: int, metric: str, start: datetime, end: datetime, threshold_ms: float | None = None
) -> list[Latency]:
    """Return percentiles for each place and kind of connection over whole closed hours. One query."""
    return [
        _latency(vantage, merged(one for _at, one in hours), threshold_ms)
        for vantage, hours in _hours(probe_id, metric, start, end).items()
    ]


def _latency(vantage: Vantage, whole: LogHistogram, threshold_ms: float | None) -> Latency:
    over = None if threshold_ms is None or not whole.count else whole.count_over(threshold_ms) / whole.count
    return Latency(vantage[0], vantage[1], percentiles_of(whole), over, whole.over)


def latency_series(
    *, probe_id: int, metric: str, start: datetime, end: datetime, points: int
) -> tuple[int, dict[Vantage, list[tuple[datetime, list[Percentile]]]]]:
    """Return (seconds of a step, percentiles of each step for each place); steps are whole hours, at most `points`."""
    step = max(math.ceil((end - start).total_seconds() / points / HOUR_SECONDS), 1) * HOUR_SECONDS
    found: dict[Vantage, list[tuple[datetime, list[Percentile]]]] = {}
    for vantage, hours in _hours(probe_id, metric, start, end).items():
        steps: defaultdict[int, list[Any]] = defaultdict(list)
        for at, one in hours:
            second = int(at.timestamp())
            steps[second - second % step].append(one)
        found[vantage] = [
            (datetime.fromtimestamp(second, UTC), percentiles_of(merged(parts))) for second, parts in steps.items()
        ]
    return step, found
