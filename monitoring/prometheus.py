"""The fleet's newest values as Prometheus metrics: what is fresh and known. Nothing stale, and a missing reading is no 0.

The names are those of the catalogue (monitoring/metrics.py) after `fleetdeck_gpu_` and `fleetdeck_server_`. A series ends
when its subject goes stale, is removed or retired: Prometheus then sees a gap, as the panel's own charts show one.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from django.db.models import Sum
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from fleet.enums import GpuState, ServerState
from fleet.models import Gpu, GpuFault, Server
from monitoring import metrics
from monitoring.activity import is_fresh
from monitoring.selectors import Latest, latest_for_gpus, latest_for_servers
from panel.core.clock import now

GPU_LABELS: Final = ("server", "uuid", "index", "model")
SERVER_LABELS: Final = ("server",)


def gpu_labels(gpu: Gpu) -> list[str]:
    """Return the labels of a card. The index is empty for MIG instances and cards that no longer enumerate."""
    return [gpu.server.name, gpu.uuid, "" if gpu.index is None else str(gpu.index), gpu.name]


def _fresh(latest: Latest | None, server: Server, moment: datetime) -> Latest | None:
    """Return the values while they tell of the present: within three intervals of the server's agent."""
    interval = max(server.agent.report_interval_seconds, server.agent.sample_interval_seconds)
    return latest if latest and is_fresh(latest.at, now=moment, interval_seconds=interval) else None


def _reading_families(
    prefix: str, catalogue: Iterable[metrics.Metric], labels: tuple[str, ...], rows: list[tuple[list[str], Latest]]
) -> Iterator[Metric]:
    for metric in catalogue:
        family = GaugeMetricFamily(f"{prefix}_{metric.name}", f"Newest reading, in {metric.unit}.", labels=labels)
        for values, latest in rows:
            reading = latest.values[metric.name]
            if reading is not None:
                family.add_metric(values, reading)
        if family.samples:
            yield family


class FleetCollector(Collector):
    """Collects servers, agents, cards and faults in a fixed number of queries, however many there are."""

    def collect(self) -> Iterator[Metric]:
        """Return every family. Raises DatabaseError."""
        moment = now()
        servers = list(
            Server.objects.filter(retired_at=None, agent__isnull=False).select_related("agent").order_by("pk")
        )
        gpus = list(
            Gpu.objects.filter(server__in=servers, removed_at=None)
            .select_related("server__agent", "parent")
            .order_by("server_id", "pk")
        )
        yield from self._servers(servers, moment)
        yield from self._agents(servers)
        yield from self._gpus(gpus, moment)
        yield self._faults()

    def _servers(self, servers: list[Server], moment: datetime) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            "fleetdeck_server_state", "1 for the state that it is in.", labels=("server", "state")
        )
        info = InfoMetricFamily(
            "fleetdeck_server",
            "What it is.",
            labels=("server", "provider", "region", "driver_version", "cuda_version", "simulated"),
        )
        for server in servers:
            for value in ServerState.values:
                state.add_metric([server.name, value], float(server.state == value))
            about = (server.provider, server.region, server.driver_version, server.cuda_version)
            info.add_metric([server.name, *about, str(server.is_simulated).lower()], {})
        yield state
        yield info
        latest = latest_for_servers(server_ids=[server.pk for server in servers])
        fresh = ((server, _fresh(latest.get(server.pk), server, moment)) for server in servers)
        rows = [([server.name], values) for server, values in fresh if values is not None]
        yield from _reading_families("fleetdeck_server", metrics.HOST_METRICS, SERVER_LABELS, rows)

    def _agents(self, servers: list[Server]) -> Iterator[Metric]:
        seen = GaugeMetricFamily("fleetdeck_agent_last_seen_timestamp_seconds", "Last report.", labels=SERVER_LABELS)
        skew = GaugeMetricFamily(
            "fleetdeck_agent_clock_skew_seconds", "Its clock less the panel's.", labels=SERVER_LABELS
        )
        spooled = GaugeMetricFamily("fleetdeck_agent_spooled_batches", "Reports that wait on it.", labels=SERVER_LABELS)
        lost = CounterMetricFamily(
            "fleetdeck_agent_lost_samples", "Samples that its spool dropped.", labels=SERVER_LABELS
        )
        for server in servers:
            agent, labels = server.agent, [server.name]
            if agent.last_seen_at is not None:
                seen.add_metric(labels, agent.last_seen_at.timestamp())
            if agent.clock_skew_seconds is not None:
                skew.add_metric(labels, agent.clock_skew_seconds)
            spooled.add_metric(labels, agent.spooled_batches)
            lost.add_metric(labels, agent.lost_samples)
        yield from (seen, skew, spooled, lost)

    def _gpus(self, gpus: list[Gpu], moment: datetime) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            "fleetdeck_gpu_state", "1 for the state that it is in.", labels=(*GPU_LABELS, "state")
        )
        memory = GaugeMetricFamily("fleetdeck_gpu_memory_total_bytes", "Memory that it has.", labels=GPU_LABELS)
        limit = GaugeMetricFamily("fleetdeck_gpu_power_limit_watts", "Power limit in force.", labels=GPU_LABELS)
        info = InfoMetricFamily(
            "fleetdeck_gpu", "What it is.", labels=(*GPU_LABELS, "vendor", "pci_bus_id", "parent_uuid")
        )
        for gpu in gpus:
            labels = gpu_labels(gpu)
            for value in GpuState.values:
                state.add_metric([*labels, value], float(gpu.state == value))
            if gpu.memory_total_bytes is not None:
                memory.add_metric(labels, gpu.memory_total_bytes)
            if gpu.power_limit_watts is not None:
                limit.add_metric(labels, gpu.power_limit_watts)
            info.add_metric([*labels, gpu.vendor, gpu.pci_bus_id, gpu.parent.uuid if gpu.parent else ""], {})
        yield from (state, memory, limit, info)
        latest = latest_for_gpus(gpu_ids=[gpu.pk for gpu in gpus])
        fresh = ((gpu, _fresh(latest.get(gpu.pk), gpu.server, moment)) for gpu in gpus)
        rows = [(gpu_labels(gpu), values) for gpu, values in fresh if values is not None]
        yield from _reading_families("fleetdeck_gpu", metrics.GPU_METRICS, GPU_LABELS, rows)

    def _faults(self) -> Metric:
        family = CounterMetricFamily(
            "fleetdeck_gpu_faults",
            "XIDs and other faults seen; uuid is empty where the card is not known.",
            labels=("server", "uuid", "kind", "code"),
        )
        rows = (
            GpuFault.objects.filter(server__retired_at=None)
            .values_list("server__name", "gpu__uuid", "kind", "code")
            .annotate(total=Sum("count"))
            .order_by("server__name", "gpu__uuid", "kind", "code")
        )
        for server, uuid, kind, code, total in rows:
            family.add_metric([server, uuid or "", kind, "" if code is None else str(code)], total)
        return family
