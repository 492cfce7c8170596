"""One card as long as the driver stays initialised: its handle, its three tiers, its instances."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pynvml

from fleet.agent import wire
from fleet.agent.host.processes import ProcessIdentity
from fleet.agent.nvml.facts import read_facts
from fleet.agent.nvml.fast import HIDDEN_BY_MIG, FastTier
from fleet.agent.nvml.mig import Instance, find_instances
from fleet.agent.nvml.processes import ProcessReader
from fleet.agent.nvml.readings import Readings
from fleet.agent.nvml.slow import SlowTier

SLOW_SECONDS: Final = 30.0
FACTS_SECONDS: Final = 600.0


@dataclass
class GpuReading:
    """What one round has of one card or instance; sample, health and processes are None when not read in this round."""

    uuid: str
    index: int | None = None
    parent_uuid: str = ""
    state: str = "ok"
    reason: str = ""
    sample: wire.GpuSample | None = None
    facts: wire.GpuFacts | None = None
    unsupported: dict[str, str] = field(default_factory=dict)
    health: wire.GpuHealth | None = None
    processes: list[wire.GpuProcess] | None = None
    processes_visibility: str = ""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read: whether calls that block are allowed, and who the pids of the driver are."""

    describe: Callable[[int], ProcessIdentity | None]
    has_host_pids: bool | None
    is_pcie_wanted: bool = False


class Card:
    """Reads one card; every method may raise CardLostError, StartOverError, or never return."""

    def __init__(self, handle: Any, uuid: str, index: int, pci_bus_id: str, options: ReadOptions) -> None:
        self.uuid = uuid
        self.index = index
        self.pci_bus_id = pci_bus_id
        self.handle = handle
        self._readings = Readings()
        self._options = options
        self._facts: wire.GpuFacts | None = None
        self._fast = FastTier(handle, self._readings)
        self._slow: SlowTier | None = None
        self._processes = ProcessReader(handle, self._readings, options.describe)
        self._instances: list[Instance] = []
        self._next_slow = 0.0
        self._next_facts = 0.0

    def read(self, *, is_pcie_wanted: bool = False) -> list[GpuReading]:
        """Return the card's reading and those of its instances; the slower tiers come when they are due."""
        now = time.monotonic()
        self._readings.fault = ""
        if now >= self._next_facts:
            self._read_facts()
            self._next_facts = now + FACTS_SECONDS
        is_slow_due = now >= self._next_slow
        reading = GpuReading(self.uuid, self.index, facts=self._facts)
        reading.sample = self._fast.read(is_pcie_wanted=is_pcie_wanted)
        if is_slow_due:
            # The first time each card adds a second of its own, so that later they do not all come in one round.
            self._next_slow = now + SLOW_SECONDS + (self.index % 6 * 5.0 if self._next_slow == 0.0 else 0.0)
            self._read_slow(reading)
        if self._readings.fault:
            reading.state, reading.reason = "degraded", self._readings.fault
        reading.unsupported = self._missing()
        return [reading, *(self._read_instance(instance, is_slow_due=is_slow_due) for instance in self._instances)]

    def close(self) -> None:
        """Give back what the library holds for this card and its instances."""
        self._fast.close()
        self._forget_instances()

    def _read_facts(self) -> None:
        facts = read_facts(self.handle, self._readings, self.pci_bus_id)
        hidden = HIDDEN_BY_MIG if facts.mig_mode else frozenset()
        if hidden != self._readings.hidden_by_mig:
            self._readings.hidden_by_mig = hidden
            self._readings.ask_again(HIDDEN_BY_MIG)
        self._facts = facts
        self._slow = SlowTier(self.handle, self._readings, facts.nvlink_links or 0)

    def _read_slow(self, reading: GpuReading) -> None:
        self._follow_mig_mode()
        reading.facts = self._facts
        if self._slow is not None:
            reading.health = self._slow.read()
        total = self._facts.memory_total_bytes if self._facts else None
        reading.processes, reading.processes_visibility = self._read_processes(self._processes, total)

    def _follow_mig_mode(self) -> None:
        """Cards are divided and put together while everything runs: ask which instances there are now."""
        mode = self._readings.ask("mig_mode", pynvml.nvmlDeviceGetMigMode, self.handle)
        is_divided = bool(mode and mode[0])
        if self._facts is not None and mode is not None and is_divided != self._facts.mig_mode:
            self._read_facts()
        if is_divided:
            self._instances = find_instances(self.handle, self._readings, self._instances, self._options.describe)
        else:
            self._forget_instances()

    def _forget_instances(self) -> None:
        for instance in self._instances:
            instance.close()
        self._instances = []

    def _read_processes(
        self, reader: ProcessReader, memory_total_bytes: int | None
    ) -> tuple[list[wire.GpuProcess], str]:
        """Return the list and whether it is the truth: without the host's pids an empty one says nothing."""
        processes = reader.read(memory_total_bytes)
        if processes is None:
            return [], "unknown"
        if self._options.has_host_pids is None:
            return processes, "unknown"
        return processes, "visible" if self._options.has_host_pids else "hidden"

    def _read_instance(self, instance: Instance, *, is_slow_due: bool) -> GpuReading:
        reading = GpuReading(instance.uuid, instance.index, self.uuid, facts=instance.facts)
        reading.sample = instance.sample()
        if is_slow_due:
            total = instance.facts.memory_total_bytes
            reading.processes, reading.processes_visibility = self._read_processes(instance.processes, total)
        reading.unsupported = instance.readings.missing()
        return reading

    def _missing(self) -> dict[str, str]:
        """Return why readings are missing, those that come with another call's answer included."""
        missing = self._readings.missing()
        if "utilization_percent" in missing:
            missing["memory_busy_percent"] = missing["utilization_percent"]
        if self._readings.chosen("memory_used_bytes"):
            missing["memory_reserved_bytes"] = "function_not_found"  # the older call: used includes reserved
        return missing
