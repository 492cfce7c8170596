"""One simulated server: its file, its cards and their work, moved on second by second."""

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from fleet.simulation.engines.records import Guest, Guests
from fleet.simulation.faults import FallingCard
from fleet.simulation.load import Demand, Idle, Inference, Load, Parked, Training, Video, clamp
from fleet.simulation.nvml import Card, Instance, Process, SimulatedHost
from fleet.simulation.physics import CardModel, activity
from fleet.simulation.plan import CardPlan, InstancePlan, LoadKind, ServerPlan

MIB: Final = 1 << 20
FIRST_PID: Final = 4_100_000  # hardly ever reached: without workloads, no process of this machine is meant
WARM_UP_SECONDS: Final = 240
WARM_UP_STEP: Final = 4.0
MIG_SLICES: Final = 7
GUEST_INTENSITY: Final = 0.7
PidOf = Callable[[str], int]


@dataclass(slots=True)
class InstanceRunner:
    """A MIG instance and its work."""

    instance: Instance
    plan: InstancePlan
    load: Load
    pid: int

    def step(self, now: float, seconds: float) -> Demand:
        """Move the instance's memory, activity and process; return its demand, for the card's power."""
        demand = self.load.step(now, seconds)
        used = round(demand.memory * self.plan.memory_mib) * MIB
        self.instance.update({"memory_used_bytes": used, **activity(demand)})
        self.instance.set_processes(processes(self.plan.process, self.pid, demand, used))
        return demand


class CardRunner:
    """A card, what it does and what happens to it."""

    def __init__(
        self,
        card: Card,
        plan: CardPlan,
        rng: np.random.Generator,
        *,
        pid_of: PidOf,
        utc_offset_hours: float,
        now: float,
    ) -> None:
        self.card = card
        self.plan = plan
        self.pid = pid_of(plan.process) if plan.process else 0
        self.load = make_load(plan.load, rng, job=plan.job, utc_offset_hours=utc_offset_hours)
        self.model = CardModel(card, plan.profile, rng, cooling=plan.cooling, ambient=float(rng.uniform(-2, 3)))
        self.falling = (
            FallingCard(card, rng, every_seconds=plan.lost_every_seconds, now=now) if plan.lost_every_seconds else None
        )
        card.update(plan.readings)
        self.instances = self._divide(rng, utc_offset_hours, pid_of) if plan.instances else []

    def _divide(self, rng: np.random.Generator, utc_offset_hours: float, pid_of: PidOf) -> list[InstanceRunner]:
        instances = self.card.divide(
            {
                "profile": plan.profile,
                "memory_mib": plan.memory_mib,
                "streaming_multiprocessors": plan.streaming_multiprocessors,
                "slices": plan.slices,
            }
            for plan in self.plan.instances
        )
        return [
            InstanceRunner(
                instance=instance,
                plan=plan,
                load=make_load(plan.load, rng, utc_offset_hours=utc_offset_hours),
                pid=pid_of(plan.process) if plan.process else 0,
            )
            for instance, plan in zip(instances, self.plan.instances, strict=True)
        ]

    def step(self, now: float, seconds: float, guests: Sequence[Guest] = ()) -> None:
        """Go on by so many seconds. guests: engines that run on the card beside what is planned for it."""
        if self.falling and self.falling.step(now):
            self.model.reset()
        demand = self._divided_demand(now, seconds) if self.instances else self.load.step(now, seconds)
        if self.falling and self.falling.has_fallen:
            demand, guests = Demand(), ()
        self.model.step(shared(demand, guests), seconds)
        if not self.instances:
            theirs = [self._process_of(guest) for guest in guests]
            used = (self.card.get("memory_used_bytes") or 0) - sum(each.memory_bytes or 0 for each in theirs)
            hidden = self.plan.is_process_memory_hidden
            self.card.set_processes(
                [*processes(self.plan.process, self.pid, demand, None if hidden else used), *theirs]
            )

    def _process_of(self, guest: Guest) -> Process:
        room = self.plan.profile.memory_mib - self.plan.profile.reserved_mib
        return Process(
            pid=guest.pid,
            name=guest.name,
            memory_bytes=round(guest.memory * room) * MIB,
            sm_percent=round(100 * guest.utilization),
            memory_percent=round(100 * guest.utilization * GUEST_INTENSITY),
        )

    def _divided_demand(self, now: float, seconds: float) -> Demand:
        """Add up the instances: what the card does as a whole, though the driver does not tell its utilisation."""
        parts = [(runner.plan, runner.step(now, seconds)) for runner in self.instances]
        memory = sum(part.memory * plan.memory_mib for plan, part in parts) / self.plan.profile.memory_mib
        return Demand(
            utilization=clamp(sum(part.utilization * plan.slices for plan, part in parts) / MIG_SLICES),
            intensity=max(part.intensity for _plan, part in parts),
            memory=clamp(memory),
            has_context=any(part.has_context for _plan, part in parts),
        )


class SimulatedServer:
    """A server of a plan. The same seed, plan and clock give the same readings.

    pid_of: program → the pid that stands for it; by default numbers that nobody has.
    """

    def __init__(
        self, plan: ServerPlan, directory: Path, *, seed: int, now: float, pid_of: PidOf | None = None
    ) -> None:
        self.plan = plan
        self._pid_of = pid_of or numbered()
        self.host = SimulatedHost.create(
            directory / f"{plan.name}.nvml",
            driver_version=plan.driver_version,
            nvml_version=f"{plan.cuda_version // 1000}.{plan.driver_version}",
            cuda_version=plan.cuda_version,
        )
        self.runners = [self._runner(number, card, seed, now) for number, card in enumerate(plan.cards)]
        self.guests = Guests(directory / "engines")
        self.guests.own()
        start = now - WARM_UP_SECONDS
        for number in range(int(WARM_UP_SECONDS / WARM_UP_STEP)):
            self.step(start + number * WARM_UP_STEP, WARM_UP_STEP)

    def _runner(self, number: int, plan: CardPlan, seed: int, now: float) -> CardRunner:
        name = zlib.crc32(self.plan.name.encode())
        return CardRunner(
            self.host.add_card(plan.profile),
            plan,
            np.random.default_rng([seed, name, number]),
            pid_of=self._pid_of,
            utc_offset_hours=self.plan.utc_offset_hours,
            now=now,
        )

    def step(self, now: float, seconds: float) -> None:
        """Go on by so many seconds; readers see the whole server move at once."""
        guests = self.guests.by_card()
        with self.host.edit():
            for runner in self.runners:
                runner.step(now, seconds, guests.get(runner.card.uuid, ()))


def shared(demand: Demand, guests: Sequence[Guest]) -> Demand:
    """Return what a card does when engines run on it beside what it does anyway."""
    if not guests:
        return demand
    working = any(guest.utilization for guest in guests)
    return replace(
        demand,
        utilization=clamp(demand.utilization + sum(guest.utilization for guest in guests)),
        intensity=max(demand.intensity, GUEST_INTENSITY if working else 0.0),
        memory=clamp(demand.memory + sum(guest.memory for guest in guests)),
        has_context=True,
    )


def numbered() -> PidOf:
    """Return a source of pids that no process has."""
    numbers = itertools.count(FIRST_PID)
    return lambda _name: next(numbers)


def make_load(kind: LoadKind, rng: np.random.Generator, *, job: int = 0, utc_offset_hours: float = 0.0) -> Load:
    """Return the work of one card."""
    if kind == "training":
        return Training(rng, job=job)
    if kind == "inference":
        peak = float(rng.uniform(3, 9))
        return Inference(rng, utc_offset_hours=utc_offset_hours, peak_requests_per_second=peak)
    if kind == "video":
        return Video(rng)
    if kind == "parked":
        return Parked(memory=float(rng.uniform(0.8, 0.92)))
    return Parked(probe_every_seconds=300) if kind == "standby" else Idle()


def processes(name: str, pid: int, demand: Demand, memory_bytes: int | None) -> list[Process]:
    """Return the process that does this work: none without a context; memory None where the driver hides it."""
    if not name or not demand.has_context:
        return []
    held = None if memory_bytes is None else max(0, memory_bytes - 20 * MIB)
    return [
        Process(
            pid=pid,
            name=name,
            memory_bytes=held,
            sm_percent=round(100 * demand.utilization),
            memory_percent=round(100 * demand.utilization * demand.intensity),
            encoder_percent=round(100 * demand.encoder),
            decoder_percent=round(100 * demand.decoder),
        )
    ]
