"""How many files Envoy may watch: each watched file costs it an inotify instance of its user, and it aborts without one."""

import os
from pathlib import Path
from typing import Final

LIMIT: Final = Path("/proc/sys/fs/inotify/max_user_instances")
USUAL_LIMIT: Final = 128
# For Envoy's own files (CDS, LDS, RDS, SDS) and for whatever else of this user comes and goes.
RESERVE: Final = 24


def limit() -> int:
    """Return how many instances one user may have."""
    try:
        return int(LIMIT.read_text())
    except (OSError, ValueError):
        return USUAL_LIMIT


def used_by_others(envoy_pid: int | None) -> int:
    """Return how many instances this user's other processes have."""
    user, count = os.geteuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid != user or process.name == str(envoy_pid):
                continue
            links = [str(entry.readlink()) for entry in (process / "fd").iterdir()]
        except OSError:
            continue
        count += sum("inotify" in link for link in links)
    return count


def budget(envoy_pid: int | None) -> int:
    """Return how many endpoints can have a watched file of their own: two Envoys run while one takes over from another."""
    return max(limit() - used_by_others(envoy_pid) - RESERVE, 0) // 2
