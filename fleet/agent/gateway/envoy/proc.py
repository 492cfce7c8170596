"""Processes by pid and start time: whether one is still there, how it is ended, what it may use."""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from fleet.agent.clock import os_boot_id

# Nobody shortens Envoy's log while the agent is away; the disk is not to be filled meanwhile.
LARGEST_FILE: Final = 1024 * 1024 * 1024
STOP_SECONDS: Final = 5.0


class Record(msgspec.Struct):
    """One process. Pid and start time (in clock ticks since that boot) name it beyond doubt. socket: of its admin interface."""

    pid: int
    started_ticks: int
    boot_id: str
    socket: str
    command: list[str]
    started_at: float


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None for one that is gone or only waits to be collected."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def is_same(record: Record) -> bool:
    """Say whether a record's process is still there, and not another one with its number."""
    return record.boot_id == os_boot_id() and start_ticks(record.pid) == record.started_ticks


def end(
    record: Record,
    is_there: Callable[[Record], bool],
    *,
    signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL),
) -> None:
    """End a process, by force if it does not listen."""
    for number in signals:
        if not is_there(record):
            return
        with suppress(ProcessLookupError):
            os.kill(record.pid, number)
        deadline = time.monotonic() + STOP_SECONDS
        while is_there(record) and time.monotonic() < deadline:
            time.sleep(0.02)


def status_of(child: "subprocess.Popen[bytes]") -> int | None:
    """Return the status of a child that has ended. Its first thread ends before the others: those are waited for."""
    with suppress(subprocess.TimeoutExpired):
        return child.wait(STOP_SECONDS)
    return None


def set_limits(pid: int) -> None:
    """Let a process have as many connections as this user may, and no file without end."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))


def last_line(path: Path, most: int = 300) -> str:
    """Return the last line of a log, shortened; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 4096, 0))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][-most:] if lines else ""
