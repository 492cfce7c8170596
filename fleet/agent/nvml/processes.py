"""Who uses a card: the union of the compute, graphics and MPS lists, with the layouts that drivers got wrong."""

import time
from collections.abc import Callable
from typing import Any, Final

import pynvml

from fleet.agent import wire
from fleet.agent.host.processes import ProcessIdentity
from fleet.agent.nvml.readings import Readings

KINDS: Final = {
    "compute": "nvmlDeviceGetComputeRunningProcesses",
    "graphics": "nvmlDeviceGetGraphicsRunningProcesses",
    "mps": "nvmlDeviceGetMPSComputeRunningProcesses",
}
MAX_PID: Final = 4_194_304  # Linux allows no more
FIRST_SPAN_MICROSECONDS: Final = 30_000_000


class ProcessReader:
    """Lists the processes of one card or MIG instance.

    describe: pid → who that is on this machine; None where pids of the driver mean nothing here.
    """

    def __init__(self, handle: Any, readings: Readings, describe: Callable[[int], ProcessIdentity | None]) -> None:
        self._handle = handle
        self._readings = readings
        self._describe = describe
        self._is_old_layout = False
        self._utilization_seen = 0

    def read(self, memory_total_bytes: int | None) -> list[wire.GpuProcess] | None:
        """Return the processes; None when the driver does not tell. Raises CardLostError and StartOverError."""
        found = self._list(memory_total_bytes)
        if found is None:
            return None
        shares = self._shares() if found else {}
        for pid, process in found.items():
            process.sm_percent = shares.get(pid)
            identity = self._describe(pid)
            if identity is not None:
                process.name, process.user = identity.name[:500], identity.user[:100]
                process.container, process.started_at_ms = identity.container[:100], identity.started_at_ms
        ordered = sorted(found.values(), key=lambda process: -(process.memory_used_bytes or 0))
        return ordered[: wire.LIMITS["processes_per_gpu"]]

    def _list(self, memory_total_bytes: int | None) -> dict[int, wire.GpuProcess] | None:
        found = self._union()
        if found is not None and not self._is_old_layout and not _is_sane(found, memory_total_bytes):
            self._is_old_layout = True  # drivers 535.43 to 535.86 moved the members of the newer structure
            found = self._union()
        if found is None or not _is_sane(found, memory_total_bytes):
            return None
        return found

    def _union(self) -> dict[int, wire.GpuProcess] | None:
        """Return pid → process over the three lists; None when none of them answers."""
        found: dict[int, wire.GpuProcess] = {}
        has_answer = False
        for kind, function in KINDS.items():
            rows = self._readings.ask("processes" if kind == "compute" else f"_{kind}", self._call, function)
            if rows is None:
                continue
            has_answer = True
            for row in rows:
                process = found.setdefault(row.pid, wire.GpuProcess(pid=row.pid, kinds=[]))
                process.kinds.append(kind)
                used = [process.memory_used_bytes, row.usedGpuMemory]
                process.memory_used_bytes = max((value for value in used if value is not None), default=None)
        return found if has_answer else None

    def _call(self, function: str) -> list[Any]:
        """Ask by the unversioned name; older libraries lack what it stands for, which pynvml tells by no NVMLError."""
        if not self._is_old_layout:
            try:
                return list(getattr(pynvml, function)(self._handle))
            except pynvml.NVMLLibraryMismatchError:
                self._is_old_layout = True
        return list(getattr(pynvml, f"{function}_v2")(self._handle))

    def _shares(self) -> dict[int, int]:
        """Return pid → mean percent of the multiprocessors since the call before."""
        since = self._utilization_seen or time.time_ns() // 1000 - FIRST_SPAN_MICROSECONDS
        rows = self._readings.ask("sm_percent", _utilization, self._handle, since)
        if not rows:
            return {}
        self._utilization_seen = max(row.timeStamp for row in rows)
        samples: dict[int, list[int]] = {}
        for row in rows:
            if row.smUtil <= 100:
                samples.setdefault(row.pid, []).append(row.smUtil)
        return {pid: round(sum(values) / len(values)) for pid, values in samples.items()}


def _utilization(handle: Any, since: int) -> list[Any]:
    try:
        return list(pynvml.nvmlDeviceGetProcessUtilization(handle, since))
    except pynvml.NVMLError as error:
        if error.value in {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_SUCCESS}:  # nothing ran since
            return []
        raise


def _is_sane(found: dict[int, wire.GpuProcess], memory_total_bytes: int | None) -> bool:
    ceiling = memory_total_bytes or 2**63
    return all(pid <= MAX_PID and (process.memory_used_bytes or 0) <= ceiling for pid, process in found.items())
