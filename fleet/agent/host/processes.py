"""Who a pid is: name, user, container, start; and whether the pids that the driver tells mean anything here."""

import pwd
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

# The inode of the pid namespace that the kernel starts with.
HOST_PID_NAMESPACE: Final = "pid:[4026531836]"
MAX_REMEMBERED: Final = 4_096
_CONTAINER_ID: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, as this machine knows it. container: the first twelve characters of its id, empty outside of one."""

    name: str
    user: str
    container: str
    started_at_ms: int | None


def has_host_pids(proc: Path = Path("/proc")) -> bool | None:
    """Say whether pids here are the host's, as the driver's are; None when /proc does not tell."""
    try:
        return str((proc / "self/ns/pid").readlink()) == HOST_PID_NAMESPACE
    except OSError:
        return None


def container_of(cgroups: str) -> str:
    """Return the short container id in the text of /proc/<pid>/cgroup, empty when it names none."""
    match = _CONTAINER_ID.search(cgroups)
    return match[0][:12] if match else ""


class ProcessDirectory:
    """Describes pids, each process once: a pid that is used again has another start.

    is_visible: whether pids of the driver can be looked up here at all. is_private: leave names and users out.
    """

    def __init__(self, *, is_visible: bool, is_private: bool = False) -> None:
        self._is_visible = is_visible
        self._is_private = is_private
        self._known: dict[int, tuple[float, ProcessIdentity]] = {}

    def describe(self, pid: int) -> ProcessIdentity | None:
        """Return who a pid is; None when it is gone or cannot be known."""
        if not self._is_visible:
            return None
        try:
            process = psutil.Process(pid)
            started = process.create_time()
            known = self._known.get(pid)
            if known is None or known[0] != started:
                known = (started, self._look_up(process, started))
                self._remember(pid, known)
        except psutil.Error:
            self._known.pop(pid, None)
            return None
        return known[1]

    def _look_up(self, process: psutil.Process, started: float) -> ProcessIdentity:
        container = container_of(_cgroups(process.pid))
        if self._is_private:
            return ProcessIdentity("", "", container, round(started * 1000))
        return ProcessIdentity(process.name(), _user_name(process.uids().real), container, round(started * 1000))

    def _remember(self, pid: int, entry: tuple[float, ProcessIdentity]) -> None:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[pid] = entry


def _cgroups(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
