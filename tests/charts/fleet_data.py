"""Servers that joined and reported, with readings of their cards: now, or over some minutes."""

from datetime import datetime, timedelta

import numpy as np

from fleet.agent import wire
from fleet.models import Gpu
from monitoring.models import LatestSample
from monitoring.services import sample_partitions_make
from monitoring.store.tables import GPU, HOST, SubjectKind
from panel.core.clock import now
from tests.fleet.factories import GIB, Machine, card, card_uuid, facts, joined
from tests.monitoring.samples import put

WORK = {
    "utilization_percent": 97,
    "memory_used_bytes": 112 * GIB,
    "power_watts": 612.5,
    "temperature_celsius": 67,
    "sm_clock_mhz": 1_980,
    "encoder_percent": 0,
    "decoder_percent": 0,
}
HOST_WORK = {
    "cpu_percent": 23.4,
    "memory_used_bytes": 300 * GIB,
    "load_1m": 14.2,
    "network_receive_bytes_per_second": 5.5e6,
}
HOST_FACTS = wire.HostFacts(
    hostname="rack-1.local",
    operating_system="Ubuntu 24.04",
    cpu_model="Xeon",
    cpu_count=192,
    memory_total_bytes=2_048 * GIB,
    disk_total_bytes=3_500 * GIB,
)


def latest(subject_id: int, at: datetime, *, kind: SubjectKind = GPU, reasons: int | None = 0, **values: float) -> None:
    """Store the newest sample of a subject."""
    packed = np.full(len(kind.columns), np.nan, dtype="<f4")
    for name, value in values.items():
        packed[kind.columns.index(name)] = value
    LatestSample.objects.update_or_create(
        kind=kind.code,
        subject_id=subject_id,
        defaults={"at": at, "received_at": at, "values": packed.tobytes(), "clock_event_reasons": reasons},
    )


def machine(name: str = "rack-1", cards: int = 8, **kwargs: str) -> Machine:
    """A server whose cards were found; none of them has been read yet."""
    agent, _token = joined(name, **kwargs)
    made = Machine(agent, cards)
    made.cards = [
        card(
            number,
            processes=[],
            processes_visibility="visible",
            facts=facts(number, temperature_slowdown_celsius=90),
            health=wire.GpuHealth(recovery_action=0),
        )
        for number in range(cards)
    ]
    agent.last_seen_at = now()
    agent.save()
    made.send(host=HOST_FACTS)
    return made


def working(name: str = "rack-1", cards: int = 8, **kwargs: str) -> Machine:
    """A server whose cards all work now."""
    made = machine(name, cards, **kwargs)
    at = now()
    for gpu in Gpu.objects.filter(server=made.agent.server):
        latest(gpu.pk, at, **WORK)
    latest(made.agent.server_id, at, kind=HOST, **HOST_WORK)
    return made


def gpu_of(made: Machine, number: int = 0) -> Gpu:
    """The row of one card."""
    return Gpu.objects.get(server=made.agent.server, uuid=card_uuid(number))


def history(
    subject_id: int, *, minutes: int = 15, seconds: int = 5, kind: SubjectKind = GPU, **values: object
) -> datetime:
    """Store samples of the last minutes; returns when the newest was taken."""
    sample_partitions_make()
    end = now().replace(microsecond=0)
    times = [end - timedelta(seconds=age) for age in range(0, minutes * 60, seconds)][::-1]
    put(subject_id, [int(at.timestamp() * 1000) for at in times], kind=kind, **values)
    return end
