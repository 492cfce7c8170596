"""What machine this is: read at the start and again every few minutes."""

import platform
import socket
from pathlib import Path

import psutil

from fleet.agent import clock, wire
from fleet.agent.host import cgroup
from fleet.agent.host.container import container_kind
from fleet.agent.host.processes import has_host_pids


def read_host_facts(name: str = "") -> wire.HostFacts:
    """Return the facts of this host. name: what the machine is called, else its host name."""
    return wire.HostFacts(
        hostname=(name or socket.gethostname())[:100],
        operating_system=_operating_system()[:100],
        kernel=platform.release()[:100],
        architecture=platform.machine()[:16],
        cpu_model=_cpu_model()[:100],
        cpu_count=psutil.cpu_count(),
        memory_total_bytes=psutil.virtual_memory().total,
        swap_total_bytes=_swap_total(),
        disk_total_bytes=_disk_total(),
        container=container_kind(),
        container_cpu_limit=cgroup.cpu_limit(),
        container_memory_limit_bytes=cgroup.memory_limit_bytes(),
        has_host_pids=has_host_pids(),
        booted_at_ms=_booted_at_ms(),
        os_boot_id=clock.os_boot_id(),
        python_version=platform.python_version(),
    )


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.system()


def _cpu_model(path: Path = Path("/proc/cpuinfo")) -> str:
    try:
        with path.open() as lines:
            for line in lines:
                label, _, value = line.partition(":")
                if label.strip() in {"model name", "Model"}:
                    return value.strip()
    except OSError:
        return ""
    return ""


def _swap_total() -> int | None:
    try:
        return psutil.swap_memory().total
    except (OSError, RuntimeError):
        return None


def _disk_total() -> int | None:
    try:
        return psutil.disk_usage("/").total
    except OSError:
        return None


def _booted_at_ms() -> int:
    """Return when the machine booted, to the second: by a corrected clock it would change with each reading."""
    at = clock.now()
    return (at.at_ms - at.monotonic_ms) // 60_000 * 60_000
