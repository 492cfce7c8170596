"""Reading the fleet for pages: any number of servers with their cards and newest readings in five queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import F, Func, IntegerField, QuerySet
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import JSONObject

from fleet.enums import ServerState
from fleet.models import Gpu, GpuFault, Lease, Server
from frontend.fleet_rows import FleetRows, GpuRow, LastFault, ServerRow
from frontend.leasing.leases import cards_text
from monitoring.activity import CardFacts, gpu_activity, is_fresh
from monitoring.selectors import Latest, latest_for_gpus, latest_for_servers

FAULTS_SHOWN: Final = timedelta(days=7)
DEFAULT_INTERVAL_SECONDS: Final = 5.0
# What the slow tier says that needs somebody (fleet.advice.health_advice).
HEALTH_FLAGS: Final = (
    "recovery_action",
    "remapped_rows_pending",
    "remapped_rows_failure",
    "retired_pages_pending",
    "ecc_uncorrected_volatile",
)
_GPU_FIELDS: Final = (
    "id",
    "server_id",
    "parent_id",
    "uuid",
    "index",
    "name",
    "state",
    "state_reason",
    "state_changed_at",
    "memory_total_bytes",
    "power_limit_watts",
    "processes_visibility",
    "process_count",
    "known",
)


class _ArrayLength(Func):
    function = "jsonb_array_length"
    output_field = IntegerField()


def gpu_query() -> QuerySet[Gpu]:
    """Return cards and slices with the few facts that lists need and none of the large JSON.

    known: those facts as one small object, so that a fleet's list reads JSON once for each card.
    """
    return Gpu.objects.annotate(
        process_count=_ArrayLength(F("processes")),
        known=JSONObject(
            slowdown_celsius=KeyTransform("temperature_slowdown_celsius", "facts"),
            is_mig=KeyTransform("mig_mode", "facts"),
            **{flag: KeyTransform(flag, "health") for flag in HEALTH_FLAGS},
        ),
    )


def last_faults(*, since: datetime, servers: QuerySet[Server]) -> dict[int, LastFault]:
    """Return the newest fault of each card that had one. One query."""
    faults = GpuFault.objects.filter(last_at__gte=since, server__in=servers).exclude(gpu=None)
    newest = faults.order_by("gpu_id", "-last_at").distinct("gpu_id")
    return {
        gpu_id: LastFault(kind, code, severity, last_at, count)
        for gpu_id, kind, code, severity, last_at, count in newest.values_list(
            "gpu_id", "kind", "code", "severity", "last_at", "count"
        )
    }


def interval_of(server: Server) -> float:
    """Return how often new readings of a server arrive."""
    agent = getattr(server, "agent", None)
    if agent is None:
        return DEFAULT_INTERVAL_SECONDS
    return float(max(agent.sample_interval_seconds, agent.report_interval_seconds))


def gpu_row(
    raw: Mapping[str, Any], server: Server, latest: Latest | None, fault: LastFault | None, now: datetime
) -> GpuRow:
    """Build one row from the columns of `gpu_query`."""
    interval, known = interval_of(server), raw["known"]
    is_now = is_fresh(latest.at if latest else None, now=now, interval_seconds=interval)
    processes = raw["process_count"] if raw["processes_visibility"] == "visible" else None
    facts = CardFacts(raw["state"], raw["memory_total_bytes"], processes, is_now)
    return GpuRow(
        id=raw["id"],
        uuid=raw["uuid"],
        index=raw["index"],
        name=raw["name"],
        server_id=server.pk,
        server_name=server.name,
        parent_id=raw["parent_id"],
        state=raw["state"],
        state_reason=raw["state_reason"],
        state_changed_at=raw["state_changed_at"],
        memory_total_bytes=raw["memory_total_bytes"],
        power_limit_watts=raw["power_limit_watts"],
        slowdown_celsius=known["slowdown_celsius"],
        is_mig=bool(known["is_mig"]),
        processes=processes,
        health={flag: known[flag] for flag in HEALTH_FLAGS},
        activity=gpu_activity(facts, latest.values if latest else {}),
        is_fresh=is_now,
        interval_seconds=interval,
        latest=latest,
        fault=fault,
    )


def _with_slices(rows: Iterable[GpuRow]) -> tuple[GpuRow, ...]:
    """Put MIG slices under their cards: they are part of them and are never counted twice."""
    slices: dict[int, list[GpuRow]] = defaultdict(list)
    cards: list[GpuRow] = []
    for row in rows:
        if row.parent_id is None:
            cards.append(row)
        else:
            slices[row.parent_id].append(row)
    cards.sort(key=lambda row: (row.index is None, row.index or 0, row.uuid))
    return tuple(
        replace(card, slices=tuple(sorted(slices[card.id], key=lambda row: row.uuid))) if card.id in slices else card
        for card in cards
    )


def fleet_rows(*, now: datetime, servers: QuerySet[Server] | None = None, with_forgotten: bool = False) -> FleetRows:
    """Return the servers (all that are not retired, by name) with their cards. Five queries for any number of them.

    Cards that were forgotten are left out, unless the page of one of them asks.
    """
    query = Server.objects.exclude(state=ServerState.RETIRED) if servers is None else servers
    found = list(query.select_related("agent").order_by("name"))
    ids = [server.pk for server in found]
    by_id = {server.pk: server for server in found}
    cards = gpu_query().filter(server__in=query)
    raws = list((cards if with_forgotten else cards.filter(removed_at=None)).values(*_GPU_FIELDS))
    latest = latest_for_gpus(gpu_ids=[raw["id"] for raw in raws])
    hosts = latest_for_servers(server_ids=ids)
    faults = last_faults(since=now - FAULTS_SHOWN, servers=query)
    rows: dict[int, list[GpuRow]] = defaultdict(list)
    for raw in raws:
        server = by_id[raw["server_id"]]
        rows[server.pk].append(gpu_row(raw, server, latest.get(raw["id"]), faults.get(raw["id"]), now))
    built = tuple(_server_row(server, _with_slices(rows[server.pk]), hosts.get(server.pk), now) for server in found)
    built = _with_expected(built)
    return FleetRows(now=now, servers=built, gpus=tuple(gpu for row in built for gpu in row.gpus))


def _with_expected(rows: tuple[ServerRow, ...]) -> tuple[ServerRow, ...]:
    """Put beside servers that have not reported what their leases say of their cards. One query, only when there are any."""
    ids = [row.server.pk for row in rows if not row.has_reported]
    if not ids:
        return rows
    leases = Lease.objects.filter(server__in=ids, ended_at=None).only("server_id", "spec", "observed")
    expected = {lease.server_id: cards_text(lease) for lease in leases}
    return tuple(replace(row, expected=expected.get(row.server.pk, "")) for row in rows)


def _server_row(server: Server, gpus: tuple[GpuRow, ...], host: Latest | None, now: datetime) -> ServerRow:
    interval = interval_of(server)
    fresh = is_fresh(host.at if host else None, now=now, interval_seconds=interval)
    return ServerRow(server=server, gpus=gpus, host=host, is_fresh=fresh, interval_seconds=interval)
