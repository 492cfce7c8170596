"""Reads of what went through gateways: spans of 10 s added up in the database, quantiles from the merged histograms."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from endpoints.histograms import ENOUGH, Histogram, has_enough, quantile
from endpoints.models import Gateway

WINDOWS: Final[Mapping[str, timedelta]] = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
}
PARTS: Final = ("queue", "first_byte", "total")
QUANTILES: Final = (0.5, 0.95, 0.99)
# A gateway tells every 10 s; one that was silent for so long tells nothing of the traffic now.
SILENT_AFTER: Final = timedelta(seconds=60)
_STATUS_CLASSES: Final = ("2xx", "3xx", "4xx", "5xx")
_FAILED: Final = ("5xx", "cut")

_SUMS: Final = """
    SELECT endpoint_id, SUM(requests), SUM(retries), SUM(limited), SUM(bytes_in), SUM(bytes_out), SUM(tokens), MAX(from_at)
    FROM endpoints_endpointtraffic WHERE endpoint_id = ANY(%s) AND from_at >= %s AND from_at < %s GROUP BY endpoint_id
"""
_STATUSES: Final = """
    SELECT t.endpoint_id, s.key, SUM(s.value::bigint)
    FROM endpoints_endpointtraffic t CROSS JOIN LATERAL jsonb_each_text(t.statuses) s
    WHERE t.endpoint_id = ANY(%s) AND t.from_at >= %s AND t.from_at < %s GROUP BY 1, 2
"""
_COUNTS: Final = """
    SELECT t.endpoint_id, h.part, SUM((h.value ->> 'count')::bigint), SUM((h.value ->> 'sum_ms')::float8)
    FROM endpoints_endpointtraffic t
    CROSS JOIN LATERAL (VALUES ('queue', t.queue), ('first_byte', t.first_byte), ('total', t.total)) h(part, value)
    WHERE t.endpoint_id = ANY(%s) AND t.from_at >= %s AND t.from_at < %s AND h.part = ANY(%s) GROUP BY 1, 2
"""
_BUCKETS: Final = """
    SELECT t.endpoint_id, h.part, b.key::int, SUM(b.value::bigint)
    FROM endpoints_endpointtraffic t
    CROSS JOIN LATERAL (VALUES ('queue', t.queue), ('first_byte', t.first_byte), ('total', t.total)) h(part, value)
    CROSS JOIN LATERAL jsonb_each_text(COALESCE(h.value -> 'buckets', '{}')) b
    WHERE t.endpoint_id = ANY(%s) AND t.from_at >= %s AND t.from_at < %s AND h.part = ANY(%s) GROUP BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of one part of requests. quantiles: in ms by share; None where n is too small for it (see `needs`)."""

    n: int
    mean_ms: float | None
    quantiles: Mapping[float, float | None]

    @classmethod
    def of(cls, histogram: Histogram) -> "Latency":
        """Return the quantiles that a histogram has enough samples for."""
        found = {each: quantile(histogram, each) if has_enough(histogram, each) else None for each in QUANTILES}
        count = histogram.count
        return cls(count, histogram.sum_ms / count if count else None, found)

    @staticmethod
    def needs(share: float) -> int:
        """Return how many samples a quantile needs."""
        return ENOUGH[share]


_NOTHING: Final = Histogram(0, 0.0, {})


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went through all gateways for one endpoint within [start, end).

    requests, …: None when no gateway told of anything in that time, which is not the same as no requests. statuses: by class
    (`2xx`), everything else under its own key. latency: by part (queue, first_byte, total). tokens: of callers with a key,
    None when there were none: nobody counts those of others.
    """

    start: datetime
    end: datetime
    requests: int | None = None
    retries: int | None = None
    limited: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    tokens: int | None = None
    statuses: Mapping[str, int] = field(default_factory=dict)
    latency: Mapping[str, Latency] = field(default_factory=dict)
    newest_at: datetime | None = None

    @property
    def requests_per_second(self) -> float | None:
        """Return the mean rate over the whole time."""
        return None if self.requests is None else self.requests / (self.end - self.start).total_seconds()

    @property
    def tokens_per_second(self) -> float | None:
        """Return the mean rate of tokens, prompts and answers together."""
        return None if self.tokens is None else self.tokens / (self.end - self.start).total_seconds()

    @property
    def error_percent(self) -> float | None:
        """Return the share of requests that failed here (5xx, or broken off after they began); None without requests.

        What callers did wrong, or gave up, and what a limit refused is not counted as an error.
        """
        if not self.requests:
            return None
        return 100 * sum(self.statuses.get(name, 0) for name in _FAILED) / self.requests


def traffic_of(
    *, endpoints: Mapping[int, datetime], window: timedelta, at: datetime, parts: Collection[str] = PARTS
) -> dict[int, Traffic]:
    """Return the traffic of endpoints over the last `window`. Four queries, five when some had none.

    endpoints: by id, when each was made (a rate over a time in which it did not exist would be too low).
    """
    start, ids = at - window, list(endpoints)
    between = [ids, start, at]
    sums = {row[0]: row[1:] for row in _rows(_SUMS, between)}
    statuses: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for pk, status, number in _rows(_STATUSES, between):
        statuses[pk][_class_of(status)] += int(number)
    latency = _latencies([*between, list(parts)])
    is_told = len(sums) == len(ids) or Gateway.objects.filter(reported_at__gte=at - SILENT_AFTER).exists()
    none = (0, 0, 0, 0, 0, None, None) if is_told else (None,) * 7
    found = {}
    for pk, made_at in endpoints.items():
        *numbers, newest = sums.get(pk, none)
        requests, retries, limited, bytes_in, bytes_out, tokens = (
            None if each is None else int(each) for each in numbers
        )
        found[pk] = Traffic(
            max(start, min(made_at, at - timedelta(seconds=10))), at, requests, retries, limited, bytes_in, bytes_out, tokens,
            statuses=dict(sorted(statuses[pk].items())),
            latency={part: latency.get((pk, part), Latency.of(_NOTHING)) for part in parts},
            newest_at=newest,
        )  # fmt: skip
    return found


def _rows(sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _class_of(status: str) -> str:
    """Return `2xx` for 200; a class stays, and so does what is no status (a caller that went away)."""
    return f"{status[0]}xx" if len(status) == 3 and f"{status[0]}xx" in _STATUS_CLASSES else status


def _latencies(parameters: list[Any]) -> dict[tuple[int, str], Latency]:
    buckets: defaultdict[tuple[int, str], dict[int, int]] = defaultdict(dict)
    for pk, part, key, number in _rows(_BUCKETS, parameters):
        buckets[pk, part][key] = int(number)
    return {
        (pk, part): Latency.of(Histogram(int(count or 0), float(sum_ms or 0.0), buckets[pk, part]))
        for pk, part, count, sum_ms in _rows(_COUNTS, parameters)
    }
