"""MIG: the instances into which a card is divided. Each has memory and processes of its own; the card keeps the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

from fleet.agent import clock, wire
from fleet.agent.host.processes import ProcessIdentity
from fleet.agent.nvml.facts import read_memory
from fleet.agent.nvml.gpm import GpmReader
from fleet.agent.nvml.processes import ProcessReader
from fleet.agent.nvml.readings import Readings


@dataclass(eq=False)
class Instance:
    """One MIG instance as long as it exists."""

    uuid: str
    index: int
    handle: Any
    readings: Readings
    processes: ProcessReader
    facts: wire.GpuFacts
    gpm: GpmReader | None

    def sample(self) -> wire.GpuSample:
        """Return what an instance gives: the memory in use, and from Hopper on how busy it was.

        Raises CardLostError and StartOverError.
        """
        at = clock.now()
        memory = read_memory(self.handle, self.readings)
        sample = wire.GpuSample(
            at.at_ms, at.monotonic_ms, memory_used_bytes=memory.used if memory is not None else None
        )
        for name, value in self.gpm.read().items() if self.gpm is not None else ():
            setattr(sample, name, value)
        return sample

    def close(self) -> None:
        """Give back what the library holds for this instance."""
        if self.gpm is not None:
            self.gpm.close()


def find_instances(
    parent: Any,
    readings: Readings,
    known: list[Instance],
    describe: Callable[[int], ProcessIdentity | None],
) -> list[Instance]:
    """Return the instances that a card has now; those known already keep their state, those gone are closed.

    Raises CardLostError and StartOverError.
    """
    by_uuid = {instance.uuid: instance for instance in known}
    count = readings.ask("_mig_count", pynvml.nvmlDeviceGetMaxMigDeviceCount, parent) or 0
    found: list[Instance] = []
    for index in range(min(count, wire.LIMITS["mig_instances_per_gpu"])):
        try:
            handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, index)
            uuid = str(pynvml.nvmlDeviceGetUUID(handle))
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_NOT_FOUND:  # places without an instance are the normal case
                readings.refused("_mig_instance", error.value)
            continue
        instance = by_uuid.get(uuid) or _new_instance(uuid, index, parent, handle, describe)
        instance.handle, instance.index = handle, index
        found.append(instance)
    for instance in known:
        if instance not in found:
            instance.close()
    return found


def _new_instance(
    uuid: str, index: int, parent: Any, handle: Any, describe: Callable[[int], ProcessIdentity | None]
) -> Instance:
    readings = Readings()
    number = readings.ask("_gpu_instance", pynvml.nvmlDeviceGetGpuInstanceId, handle)
    gpm = GpmReader(parent, readings, gpu_instance=number) if number is not None else None
    memory = read_memory(handle, readings)
    facts = wire.GpuFacts(
        name=(readings.ask("name", pynvml.nvmlDeviceGetName, handle) or "")[:100],
        memory_total_bytes=int(memory.total) if memory is not None else None,
        memory_reserved_bytes=getattr(memory, "reserved", None),
    )
    return Instance(uuid, index, handle, readings, ProcessReader(handle, readings, describe), facts, gpm)
