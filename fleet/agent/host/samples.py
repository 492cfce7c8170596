"""How busy the machine is, and what the agent itself costs; each figure optional."""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from fleet.agent import clock, wire
from fleet.agent.host.proc import ProcReader

T = TypeVar("T")
REFRESH_SECONDS: Final = 300.0


class HostSampler:
    """Takes one sample of the host at a time; percentages are means since the call before."""

    def __init__(self, reader: ProcReader | None = None) -> None:
        self._reader = reader or ProcReader()
        self._next_refresh = time.monotonic() + REFRESH_SECONDS
        self._cpu_before = _try(self._reader.cpu_ticks)
        self._own_before = (time.monotonic(), _own_cpu_seconds())

    def read(self) -> wire.HostSample:
        """Return the sample of this moment."""
        if time.monotonic() >= self._next_refresh:
            self._reader.refresh()
            self._next_refresh = time.monotonic() + REFRESH_SECONDS
        at = clock.now()
        memory, disk, network = _try(self._reader.memory), _try(self._reader.disk), _try(self._reader.network)
        return wire.HostSample(
            at.at_ms,
            at.monotonic_ms,
            cpu_percent=self._cpu_percent(),
            memory_used_bytes=memory.used_bytes if memory else None,
            swap_used_bytes=memory.swap_used_bytes if memory else None,
            load_1m=_try(_load),
            disk_used_bytes=_try(_disk_used),
            disk_read_bytes=disk.in_bytes if disk else None,
            disk_write_bytes=disk.out_bytes if disk else None,
            network_receive_bytes=network.in_bytes if network else None,
            network_transmit_bytes=network.out_bytes if network else None,
            agent_cpu_percent=self._own_cpu_percent(),
            agent_memory_bytes=_try(_own_memory),
        )

    def _cpu_percent(self) -> float | None:
        """Return the share of all CPUs that was in use."""
        ticks, before = _try(self._reader.cpu_ticks), self._cpu_before
        self._cpu_before = ticks
        if ticks is None or before is None or ticks[0] <= before[0]:
            return None
        idle = (ticks[1] - before[1]) / (ticks[0] - before[0])
        return round(100.0 * min(1.0, max(0.0, 1.0 - idle)), 2)

    def _own_cpu_percent(self) -> float | None:
        """Return what the agent used, 100 being one CPU."""
        now, used = time.monotonic(), _own_cpu_seconds()
        then, before = self._own_before
        self._own_before = (now, used)
        return round(100.0 * (used - before) / (now - then), 2) if now > then else None


def _try(call: Callable[[], T]) -> T | None:
    """Return what a reading gives, None where this machine or container hides it."""
    try:
        return call()
    except (OSError, ValueError, IndexError):
        return None


def _load() -> float:
    return round(os.getloadavg()[0], 2)


def _disk_used() -> int:
    """Return the bytes in use on the root file system."""
    disk = os.statvfs("/")
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


def _own_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _own_memory() -> int:
    """Return the resident bytes of this process."""
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
