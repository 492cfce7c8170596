"""What a container may use: CPU and memory limits of its cgroup, both versions of the interface."""

from pathlib import Path
from typing import Final

CGROUP_ROOT: Final = Path("/sys/fs/cgroup")
OWN_CGROUPS: Final = Path("/proc/self/cgroup")
# Version 1 writes "no limit" as a number near the largest that fits.
NO_LIMIT_BYTES: Final = 1 << 60


def cpu_limit(root: Path = CGROUP_ROOT, own: Path = OWN_CGROUPS) -> float | None:
    """Return how many CPUs the tightest enclosing cgroup allows, None for no limit."""
    limits = [_cpu_v2(folder) for folder in _folders_v2(root, own)]
    limits += [_cpu_v1(folder) for folder in _folders_v1(root, own, "cpu")]
    return min((limit for limit in limits if limit is not None), default=None)


def memory_limit_bytes(root: Path = CGROUP_ROOT, own: Path = OWN_CGROUPS) -> int | None:
    """Return the memory that the tightest enclosing cgroup allows, None for no limit."""
    limits = [_number(folder / "memory.max") for folder in _folders_v2(root, own)]
    limits += [_number(folder / "memory.limit_in_bytes") for folder in _folders_v1(root, own, "memory")]
    return min((limit for limit in limits if limit is not None and limit < NO_LIMIT_BYTES), default=None)


def _folders_v2(root: Path, own: Path) -> list[Path]:
    """Return the cgroup's own folder and those around it; the unified hierarchy is the line that begins with 0."""
    return _with_parents(root, _own_path(own, ""))


def _folders_v1(root: Path, own: Path, controller: str) -> list[Path]:
    path = _own_path(own, controller)
    for name in (controller, f"{controller},cpuacct", f"cpuacct,{controller}"):
        if (root / name).is_dir():
            return _with_parents(root / name, path)
    return []


def _own_path(own: Path, controller: str) -> str:
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return "/"
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == controller or (controller and controller in controllers.split(",")):
            return path
    return "/"


def _with_parents(root: Path, path: str) -> list[Path]:
    """Return root/path and each folder above it down to root; in a container the path may not exist below its root."""
    folder = root / path.lstrip("/")
    if ".." in folder.parts or not folder.is_dir():
        return [root]
    return [folder, *(parent for parent in folder.parents if parent == root or root in parent.parents)]


def _cpu_v2(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split()
    if len(words) != 2 or not words[0].isdigit() or not words[1].isdigit() or words[1] == "0":
        return None
    return round(int(words[0]) / int(words[1]), 3)


def _cpu_v1(folder: Path) -> float | None:
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    return round(quota / period, 3) if quota and period and quota > 0 else None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
