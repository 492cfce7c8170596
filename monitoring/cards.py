"""Cards with their newest readings: what each does now, and what the fleet adds up to."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Func, IntegerField, QuerySet

from fleet.models import Agent, Gpu, Server
from fleet.selectors import gpu_list
from monitoring.activity import Activity, CardFacts, gpu_activity, is_fresh
from monitoring.selectors import Latest, latest_for_gpus

DEFAULT_INTERVAL_SECONDS = 5.0
# What only one card's own page shows: large JSON that a list of hundreds does without.
DETAIL_FIELDS = ("facts", "health", "unsupported", "processes", "server__facts", "server__labels")
_GONE = frozenset({Activity.MISSING, Activity.LOST})


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """The fleet in a few numbers. Means and sums are over the cards that report, and None when none does.

    gpus_known: whole cards of servers that are not retired. gpus_reporting: those that answer and whose newest reading is of
    now; a value that is old, or of a card that is gone, is in no sum. by_activity and servers_by_state: counts.
    """

    gpus_known: int
    gpus_reporting: int
    gpus_busy: int
    gpus_missing: int
    by_activity: dict[str, int]
    servers_by_state: dict[str, int]
    utilization_percent: float | None
    memory_used_bytes: float | None
    memory_total_bytes: int | None
    power_watts: float | None
    data_at: datetime | None


class _ArrayLength(Func):
    function = "jsonb_array_length"
    output_field = IntegerField()


def with_process_count(gpus: QuerySet[Gpu]) -> QuerySet[Gpu]:
    """Add `process_count` and leave the large columns in the database."""
    return gpus.annotate(process_count=_ArrayLength(F("processes"))).defer(*DETAIL_FIELDS)


def interval_seconds(server: Server) -> float:
    """Return how often new readings of a server arrive."""
    agent: Agent | None = getattr(server, "agent", None)
    if agent is None:
        return DEFAULT_INTERVAL_SECONDS
    return float(max(agent.sample_interval_seconds, agent.report_interval_seconds))


def is_latest_fresh(gpu: Gpu, latest: Latest | None, now: datetime) -> bool:
    """Say whether the newest reading of a card still tells of the present."""
    return is_fresh(latest.at if latest else None, now=now, interval_seconds=interval_seconds(gpu.server))


def card_activity(gpu: Gpu, latest: Latest | None, now: datetime) -> Activity:
    """Return what a card does; `gpu` comes with its server and agent, and with `process_count` or its processes."""
    count = gpu.process_count if hasattr(gpu, "process_count") else len(gpu.processes)
    processes = count if gpu.processes_visibility == "visible" else None
    facts = CardFacts(gpu.state, gpu.memory_total_bytes, processes, is_latest_fresh(gpu, latest, now))
    return gpu_activity(facts, latest.values if latest else {})


def free_memory_bytes(gpu: Gpu, latest: Latest | None) -> float | None:
    """Return the memory that no program holds, None where either number is missing."""
    used = latest.values.get("memory_used_bytes") if latest else None
    return None if used is None or gpu.memory_total_bytes is None else gpu.memory_total_bytes - used


def narrow(
    gpus: QuerySet[Gpu], *, now: datetime, activity: Collection[str] = (), min_free_memory_bytes: float | None = None
) -> QuerySet[Gpu]:
    """Return the cards whose newest readings fit; those whose reading is old, or that are gone, have no free memory."""
    if not activity and min_free_memory_bytes is None:
        return gpus
    rows = list(with_process_count(gpus))
    latest = latest_for_gpus(gpu_ids=[gpu.pk for gpu in rows])
    kept = []
    for gpu in rows:
        reading = latest.get(gpu.pk)
        does = card_activity(gpu, reading, now)
        if activity and does not in activity:
            continue
        if min_free_memory_bytes is not None:
            free = None if does in _GONE or does == Activity.NO_DATA else free_memory_bytes(gpu, reading)
            if free is None or free < min_free_memory_bytes:
                continue
        kept.append(gpu.pk)
    return gpus.filter(pk__in=kept)


def fleet_summary(*, now: datetime, is_simulated: bool | None = None) -> FleetSummary:
    """Return what the fleet adds up to; slices are part of their cards. Three queries."""
    gpus = list(with_process_count(gpu_list(is_slice=False, is_simulated=is_simulated)))
    latest = latest_for_gpus(gpu_ids=[gpu.pk for gpu in gpus])
    does = {gpu.pk: card_activity(gpu, latest.get(gpu.pk), now) for gpu in gpus}
    reporting = [gpu for gpu in gpus if does[gpu.pk] not in _GONE | {Activity.NO_DATA}]
    counts = Counter(does.values())
    values = [latest[gpu.pk].values for gpu in reporting]
    servers = Server.objects.filter(retired_at=None)
    if is_simulated is not None:
        servers = servers.filter(is_simulated=is_simulated)
    states = servers.order_by().values_list("state").annotate(Count("id"))
    utilizations = _readings(values, "utilization_percent")
    return FleetSummary(
        gpus_known=len(gpus),
        gpus_reporting=len(reporting),
        gpus_busy=counts[Activity.BUSY],
        gpus_missing=counts[Activity.MISSING] + counts[Activity.LOST],
        by_activity={str(activity): counts[activity] for activity in Activity},
        servers_by_state=dict(states),
        utilization_percent=sum(utilizations) / len(utilizations) if utilizations else None,
        memory_used_bytes=_total(_readings(values, "memory_used_bytes")),
        memory_total_bytes=sum(gpu.memory_total_bytes or 0 for gpu in reporting) or None,
        power_watts=_total(_readings(values, "power_watts")),
        data_at=max((reading.at for reading in latest.values()), default=None),
    )


def _readings(values: Collection[Mapping[str, float | None]], metric: str) -> list[float]:
    return [value for row in values if (value := row.get(metric)) is not None]


def _total(values: list[float]) -> float | None:
    return sum(values) if values else None
