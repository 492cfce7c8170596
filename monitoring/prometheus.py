"""The fleet's newest values as Prometheus metrics: what is fresh and known. Nothing stale, and a missing reading is no 0.

The names are those of the catalogue (monitoring/metrics.py) after `fleetdeck_gpu_` and `fleetdeck_server_`. A series ends
when its subject goes stale, is removed or retired: Prometheus then sees a gap, as the panel's own charts show one.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.db.models import Sum

from fleet.enums import GpuState, ServerState
from fleet.models import Gpu, GpuFault, Server
from monitoring.activity import is_fresh
from monitoring.exposition import Exposition, labels_text
from monitoring.metrics import GPU_METRICS, HOST_METRICS, Metric
from monitoring.selectors import Latest, latest_for_gpus, latest_for_servers
from panel.core.clock import now


def fleet_metrics(write: Exposition) -> Iterator[str]:
    """Return every family of servers, agents, cards and faults, in a fixed number of queries. Raises DatabaseError."""
    moment = now()
    servers = list(Server.objects.filter(retired_at=None, agent__isnull=False).select_related("agent").order_by("pk"))
    gpus = list(
        Gpu.objects.filter(server__in=servers, removed_at=None)
        .select_related("parent")
        .defer("facts", "health", "unsupported", "processes")
        .order_by("server_id", "pk")
    )
    yield from _servers(write, servers, moment)
    yield from _agents(write, servers)
    yield from _gpus(write, gpus, {server.pk: server for server in servers}, moment)
    yield _faults(write)


def gpu_labels(gpu: Gpu, server: Server) -> str:
    """Return the labels of a card. The index is empty for MIG instances and for cards that no longer enumerate."""
    index = "" if gpu.index is None else str(gpu.index)
    return labels_text(server=server.name, uuid=gpu.uuid, index=index, model=gpu.name)


def _fresh(latest: Latest | None, server: Server, moment: datetime) -> Latest | None:
    """Return the values while they tell of the present: within three intervals of the server's agent."""
    interval = max(server.agent.report_interval_seconds, server.agent.sample_interval_seconds)
    return latest if latest and is_fresh(latest.at, now=moment, interval_seconds=interval) else None


def _readings(
    write: Exposition, prefix: str, catalogue: Iterable[Metric], rows: list[tuple[str, Latest]]
) -> Iterator[str]:
    for metric in catalogue:
        values = ((labels, latest.values[metric.name]) for labels, latest in rows)
        yield write.gauge(f"{prefix}_{metric.name}", f"Newest reading, in {metric.unit}.", values)


def _servers(write: Exposition, servers: list[Server], moment: datetime) -> Iterator[str]:
    labels = {server.pk: labels_text(server=server.name) for server in servers}
    yield write.gauge(
        "fleetdeck_server_state",
        "1 for the state that it is in.",
        (
            (f'{labels[server.pk]},state="{state}"', float(server.state == state))
            for server in servers
            for state in ServerState.values
        ),
    )
    yield write.info(
        "fleetdeck_server",
        "What it is.",
        (
            labels_text(
                server=server.name,
                provider=server.provider,
                region=server.region,
                driver_version=server.driver_version,
                cuda_version=server.cuda_version,
                simulated=str(server.is_simulated).lower(),
            )
            for server in servers
        ),
    )
    latest = latest_for_servers(server_ids=[server.pk for server in servers])
    found = ((labels[server.pk], _fresh(latest.get(server.pk), server, moment)) for server in servers)
    rows = [(text, values) for text, values in found if values is not None]
    yield from _readings(write, "fleetdeck_server", HOST_METRICS, rows)


def _agents(write: Exposition, servers: list[Server]) -> Iterator[str]:
    agents = [(labels_text(server=server.name), server.agent) for server in servers]
    yield write.gauge(
        "fleetdeck_agent_last_seen_timestamp_seconds",
        "When its last report came.",
        ((labels, agent.last_seen_at.timestamp() if agent.last_seen_at else None) for labels, agent in agents),
    )
    yield write.gauge(
        "fleetdeck_agent_clock_skew_seconds",
        "Its clock less the panel's.",
        ((labels, agent.clock_skew_seconds) for labels, agent in agents),
    )
    yield write.gauge(
        "fleetdeck_agent_spooled_batches",
        "Reports that wait on its disk.",
        ((labels, agent.spooled_batches) for labels, agent in agents),
    )
    yield write.counter(
        "fleetdeck_agent_lost_samples",
        "Samples that its full spool dropped.",
        ((labels, agent.lost_samples) for labels, agent in agents),
    )


def _gpus(write: Exposition, gpus: list[Gpu], servers: dict[int, Server], moment: datetime) -> Iterator[str]:
    labels = {gpu.pk: gpu_labels(gpu, servers[gpu.server_id]) for gpu in gpus}
    yield write.gauge(
        "fleetdeck_gpu_state",
        "1 for the state that it is in.",
        ((f'{labels[gpu.pk]},state="{state}"', float(gpu.state == state)) for gpu in gpus for state in GpuState.values),
    )
    yield write.gauge(
        "fleetdeck_gpu_memory_total_bytes",
        "Memory that it has.",
        ((labels[gpu.pk], gpu.memory_total_bytes) for gpu in gpus),
    )
    yield write.gauge(
        "fleetdeck_gpu_power_limit_watts",
        "Power limit in force.",
        ((labels[gpu.pk], gpu.power_limit_watts) for gpu in gpus),
    )
    yield write.info("fleetdeck_gpu", "What it is.", (f"{labels[gpu.pk]},{_more_labels(gpu)}" for gpu in gpus))
    latest = latest_for_gpus(gpu_ids=[gpu.pk for gpu in gpus])
    found = ((labels[gpu.pk], _fresh(latest.get(gpu.pk), servers[gpu.server_id], moment)) for gpu in gpus)
    rows = [(text, values) for text, values in found if values is not None]
    yield from _readings(write, "fleetdeck_gpu", GPU_METRICS, rows)


def _more_labels(gpu: Gpu) -> str:
    parent = gpu.parent.uuid if gpu.parent else ""
    return labels_text(vendor=gpu.vendor, pci_bus_id=gpu.pci_bus_id, parent_uuid=parent)


def _faults(write: Exposition) -> str:
    rows = (
        GpuFault.objects.filter(server__retired_at=None)
        .values_list("server__name", "gpu__uuid", "kind", "code")
        .annotate(total=Sum("count"))
        .order_by("server__name", "gpu__uuid", "kind", "code")
    )
    return write.counter(
        "fleetdeck_gpu_faults",
        "XIDs and other faults seen; uuid is empty where the card is not known.",
        (
            (labels_text(server=server, uuid=uuid or "", kind=kind, code="" if code is None else str(code)), total)
            for server, uuid, kind, code, total in rows
        ),
    )
