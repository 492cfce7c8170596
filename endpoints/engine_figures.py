"""What the engines behind an endpoint tell of themselves: series of each replica and of all together, percentiles, gaps by name.

Counts and rates of replicas are added, shares are the fullest replica's, histograms are merged: the rules that the families
themselves have for their data-parallel engines.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from endpoints.models import Endpoint, Replica
from monitoring.engines.histograms import Bucketed, merged
from monitoring.engines.reading import histograms, step_for
from monitoring.engines.tables import NAMES
from monitoring.metrics import ENGINE_METRICS
from monitoring.selectors import Series, SeriesResult, series
from panel.core.clock import now

METRICS: Final = tuple(metric.name for metric in ENGINE_METRICS)
LATENCIES: Final = NAMES
# A spool keeps so much: what ended before can have nothing more to tell.
LATEST_WORD: Final = timedelta(days=3)
_SHARES: Final = frozenset(metric.name for metric in ENGINE_METRICS if metric.unit == "percent")


def replicas_told_of(server_id: int) -> Mapping[int, int]:
    """Return the replicas of a server that its agent may tell of, with their endpoints; see monitoring.ingest.owners."""
    recent = Q(ended_at=None) | Q(ended_at__gte=now() - LATEST_WORD)
    return dict(Replica.objects.filter(recent, server_id=server_id).values_list("pk", "endpoint_id"))


def replicas_within(endpoint: Endpoint, start: datetime, end: datetime) -> list[int]:
    """Return the replicas of an endpoint that there were in a time, the oldest first."""
    there = Q(ended_at=None) | Q(ended_at__gte=start)
    found = Replica.objects.filter(there, endpoint=endpoint, created_at__lt=end)
    return list(found.order_by("pk").values_list("pk", flat=True))


def engine_series(
    *, endpoint: Endpoint, metrics: Sequence[str], start: datetime, end: datetime, points: int
) -> SeriesResult:
    """Return each metric of all replicas together (kind `endpoint`), then of each one (kind `replica`).

    A replica that told nothing in a bucket does not count there; a bucket in which none did is a gap. Raises InvalidInput.
    """
    found = series(
        kind="replica", subject_ids=replicas_within(endpoint, start, end), metrics=metrics,
        start=start, end=end, points=points,
    )  # fmt: skip
    by_metric: defaultdict[str, list[Series]] = defaultdict(list)
    for one in found.series:
        by_metric[one.metric].append(one)
    together = [_together(endpoint.pk, metric, of_metric) for metric, of_metric in by_metric.items()]
    return SeriesResult(found.from_ms, found.step_seconds, found.points, found.level, [*together, *found.series])


def _together(endpoint_id: int, metric: str, parts: Sequence[Series]) -> Series:
    join = _fullest if metric in _SHARES else _sum
    average, maximum = (join(np.stack([getattr(one, name) for one in parts])) for name in ("average", "maximum"))
    return Series("endpoint", endpoint_id, metric, average, maximum)


def _sum(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    is_known = ~np.isnan(rows)
    total = np.where(is_known, rows, 0).sum(axis=0, dtype=np.float64)
    return np.where(is_known.any(axis=0), total, np.nan).astype(np.float32)


def _fullest(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    highest: NDArray[np.float32] = np.fmax.reduce(rows, axis=0)
    return highest


@dataclass(frozen=True, slots=True)
class EngineLatency:
    """One histogram of an endpoint's engines. whole: of the whole range; by_replica: of each; steps: of all, step by step."""

    name: str
    whole: Bucketed
    by_replica: Mapping[int, Bucketed]
    steps: Sequence[tuple[datetime, Bucketed]]


def engine_latency(
    *, endpoint: Endpoint, names: Sequence[str] = LATENCIES, start: datetime, end: datetime, points: int
) -> tuple[int, list[EngineLatency]]:
    """Return (seconds of a step, what the engines measured themselves), for each name that any replica told of."""
    at = now()
    step = step_for(start=start, end=end, points=points, now=at)
    found = histograms(
        replica_ids=replicas_within(endpoint, start, end), names=names, start=start, end=end, step_seconds=step, now=at
    )
    return step, [_latency(name, found) for name in names if any(key[1] == name for key in found)]


def _latency(name: str, found: Mapping[tuple[int, str, datetime], Bucketed]) -> EngineLatency:
    by_replica: defaultdict[int, Bucketed] = defaultdict(Bucketed)
    by_step: defaultdict[datetime, Bucketed] = defaultdict(Bucketed)
    for (replica, of_name, at), one in found.items():
        if of_name == name:
            by_replica[replica] = by_replica[replica].merged(one)
            by_step[at] = by_step[at].merged(one)
    return EngineLatency(name, merged(by_replica.values()), dict(by_replica), sorted(by_step.items()))


@dataclass(frozen=True, slots=True)
class Source:
    """Where a replica's figures come from: its engine's family, and what is not told, by reading. problem: a code."""

    replica: int
    server: str
    family: str
    missing: tuple[str, ...]
    broken: tuple[str, ...]
    problem: str


def engine_sources(*, endpoint: Endpoint) -> list[Source]:
    """Return what the open replicas of an endpoint say of their metrics pages."""
    rows = Replica.objects.filter(endpoint=endpoint, ended_at=None).select_related("server").order_by("pk")
    return [
        Source(
            one.pk, one.server.name, one.metrics.get("family", ""),
            tuple(one.metrics.get("missing", ())), tuple(one.metrics.get("broken", ())), one.metrics.get("problem", ""),
        )
        for one in rows
    ]  # fmt: skip


def missing_everywhere(sources: Collection[Source]) -> list[str]:
    """Return the readings that no replica with a known page exposes, in their order."""
    told = [set(one.missing) for one in sources if one.family]
    return sorted(set.intersection(*told)) if told else []
