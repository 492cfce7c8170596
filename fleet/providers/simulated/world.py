"""What runs at the simulated provider now, for whatever runs its machines; while something does, they run start-up scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.core.cache import cache

from fleet.providers.base import MachineStatus

if TYPE_CHECKING:
    from fleet.models import SimulatedMachine

ENDING: Final = timedelta(seconds=5)
# Something that runs the machines says so once a second.
HOST_SECONDS: Final = 20
_HOST_KEY: Final = "fleet:simulated:host"


@dataclass(frozen=True, slots=True)
class HostedMachine:
    """A machine that is not over. offer_key: which kind it is; startup_script: of its order, empty where there was none."""

    id: str
    offer_key: str
    is_running: bool
    startup_script: str


def has_host() -> bool:
    """Say whether something runs the machines at present."""
    return bool(cache.get(_HOST_KEY))


def host_note() -> None:
    """Say that something runs the machines, for the next HOST_SECONDS."""
    cache.set(_HOST_KEY, value=True, timeout=HOST_SECONDS)


def host_leave() -> None:
    """Say that nothing runs the machines any more."""
    cache.delete(_HOST_KEY)


def machines_hosted(*, at: datetime) -> Sequence[HostedMachine]:
    """Return the machines of all accounts that are not over, by their age. One query."""
    from fleet.models import SimulatedMachine

    rows = SimulatedMachine.objects.filter(ended_at=None).order_by("pk")
    return [
        HostedMachine(
            id=f"sim-{row.pk}",
            offer_key=row.offer_key,
            is_running=machine_status(row, at) == MachineStatus.RUNNING,
            startup_script=row.startup_script,
        )
        for row in rows
    ]


def machine_status(row: "SimulatedMachine", at: datetime) -> MachineStatus:
    """Return what a machine is at a time: it follows from its times alone."""
    if row.ended_at is not None:
        return MachineStatus.TERMINATING
    if row.preempted_at is not None and at >= row.preempted_at:
        return MachineStatus.PREEMPTED
    if row.stopped_at is not None:
        return MachineStatus.STOPPED if at >= row.stopped_at + ENDING else MachineStatus.STOPPING
    return MachineStatus.RUNNING if at >= row.running_from else MachineStatus.PROVISIONING
