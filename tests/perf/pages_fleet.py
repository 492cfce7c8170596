"""`python -m tests.perf.pages_fleet CARDS`: put a fleet that reports now into the panel's database, for the pages' benchmark."""

import sys
from datetime import datetime

import django
import numpy as np

CARDS_A_SERVER = 8
GIB = 1024**3
# Readings stay fresh for as long as a benchmark takes.
INTERVAL_SECONDS = 3600.0
MODELS = (("NVIDIA H200", 141, 700.0), ("NVIDIA H100 80GB HBM3", 80, 700.0), ("NVIDIA L20", 45, 275.0))
PROVIDERS = ("RunPod", "AutoDL", "Vast.ai", "Aliyun")


def packed(columns, **values):
    """Return one newest sample as the store keeps it."""
    row = np.full(len(columns), np.nan, dtype="<f4")
    for name, value in values.items():
        row[columns.index(name)] = value
    return row.tobytes()


def add_servers(numbers, at: datetime):
    """Add servers of these numbers with their agents; returns them."""
    from fleet.enums import DriverState, GpuHealth, ServerState
    from fleet.models import Agent, Server

    servers = Server.objects.bulk_create(
        Server(
            name=f"rack-{number:04d}",
            state=ServerState.READY,
            state_changed_at=at,
            created_at=at,
            gpu_health=GpuHealth.HEALTHY,
            driver_state=DriverState.OK,
            driver_version="590.48.01",
            provider=PROVIDERS[number % len(PROVIDERS)],
            region="eu-1",
            facts={"hostname": f"rack-{number}", "cpu_count": 192, "memory_total_bytes": 2048 * GIB},
        )
        for number in numbers
    )
    Agent.objects.bulk_create(
        Agent(
            server=server,
            token_prefix=f"p{server.pk}",
            token_hash="0" * 64,
            version="0.1.0",
            joined_at=at,
            last_seen_at=at,
            sample_interval_seconds=INTERVAL_SECONDS,
            report_interval_seconds=INTERVAL_SECONDS,
        )
        for server in servers
    )
    return servers


def add_cards(servers, at: datetime):
    """Add eight cards to each server; returns them."""
    from fleet.enums import GpuState
    from fleet.models import Gpu

    return Gpu.objects.bulk_create(
        Gpu(
            server=server,
            uuid=f"GPU-{server.pk:08d}-{index:04d}",
            index=index,
            name=model[0],
            state=GpuState.OK,
            reported_state=GpuState.OK,
            state_changed_at=at,
            first_seen_at=at,
            last_seen_at=at,
            memory_total_bytes=model[1] * GIB,
            power_limit_watts=model[2],
            processes_visibility="visible",
            facts={"temperature_slowdown_celsius": 90},
        )
        for server in servers
        for model in [MODELS[server.pk % len(MODELS)]]
        for index in range(CARDS_A_SERVER)
    )


def add_readings(servers, cards, at: datetime):
    """Add the newest reading of every card and every host."""
    from monitoring.models import LatestSample
    from monitoring.store.tables import GPU, HOST

    random = np.random.default_rng(4)
    loads = random.integers(0, 101, len(cards))
    given = [
        (GPU, card.pk, {
            "utilization_percent": load, "memory_used_bytes": load / 100 * card.memory_total_bytes,
            "power_watts": 80 + load * 5, "temperature_celsius": 30 + load * 0.4, "sm_clock_mhz": 1980,
        })
        for card, load in zip(cards, loads, strict=True)
    ] + [(HOST, server.pk, {"cpu_percent": 20, "memory_used_bytes": 300 * GIB, "load_1m": 14}) for server in servers]  # fmt: skip
    LatestSample.objects.bulk_create(
        LatestSample(
            kind=kind.code, subject_id=key, at=at, received_at=at, values=packed(kind.columns, **values),
            clock_event_reasons=0,
        )
        for kind, key, values in given
    )  # fmt: skip


def main(cards: int) -> None:
    """Bring the fleet up to a number of cards."""
    django.setup()
    from fleet.models import Server
    from panel.core.clock import now

    at = now()
    servers = add_servers(range(Server.objects.count(), cards // CARDS_A_SERVER), at)
    add_readings(servers, add_cards(servers, at), at)


if __name__ == "__main__":
    main(int(sys.argv[1]))
