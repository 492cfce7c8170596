"""Counters of the machine straight from /proc: psutil's way costs five times the CPU and counts traffic twice.

It adds up a bridge and its members, a RAID and its disks; here a byte is counted where it meets hardware.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

SECTOR_BYTES: Final = 512
VIRTUAL_DISKS: Final = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in use; what the kernel could give back at once is not in use."""

    used_bytes: int
    swap_used_bytes: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes since boot."""

    in_bytes: int
    out_bytes: int


class ProcReader:
    """Reads a few files, below another root in tests; methods raise OSError or ValueError where a file is not as expected."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._disks = self._find_disks()
        self._interfaces = self._find_interfaces()

    def refresh(self) -> None:
        """Look again which disks and interfaces there are."""
        self._disks, self._interfaces = self._find_disks(), self._find_interfaces()

    def memory(self) -> Memory:
        """Return the memory in use."""
        kib: dict[bytes, int] = {}
        for line in (self._root / "proc/meminfo").read_bytes().splitlines():
            name, _, value = line.partition(b":")
            if name in {b"MemTotal", b"MemAvailable", b"SwapTotal", b"SwapFree"}:
                kib[name] = int(value.split()[0])
        if b"MemAvailable" not in kib or b"MemTotal" not in kib:
            raise ValueError("meminfo has no MemAvailable")
        swap = kib.get(b"SwapTotal", 0) - kib.get(b"SwapFree", 0)
        return Memory((kib[b"MemTotal"] - kib[b"MemAvailable"]) * 1024, swap * 1024)

    def cpu_ticks(self) -> tuple[int, int]:
        """Return ticks of all CPUs since boot: all of them, and those in which nothing ran."""
        with (self._root / "proc/stat").open("rb") as file:
            words = file.readline().split()
        ticks = [int(word) for word in words[1:9]]  # what follows is counted in user and nice already
        return sum(ticks), ticks[3] + ticks[4]

    def disk(self) -> Traffic:
        """Return bytes read from and written to the disks."""
        read = written = 0
        for line in (self._root / "proc/diskstats").read_bytes().splitlines():
            words = line.split()
            if words[2] in self._disks:
                read += int(words[5])
                written += int(words[9])
        return Traffic(read * SECTOR_BYTES, written * SECTOR_BYTES)

    def network(self) -> Traffic:
        """Return bytes received and sent by the network interfaces."""
        received = sent = 0
        for line in (self._root / "proc/net/dev").read_bytes().splitlines()[2:]:
            name, _, rest = line.partition(b":")
            if name.strip() in self._interfaces:
                words = rest.split()
                received += int(words[0])
                sent += int(words[8])
        return Traffic(received, sent)

    def _find_disks(self) -> frozenset[bytes]:
        names = self._names("sys/block")
        return frozenset(name.encode() for name in names if not name.startswith(VIRTUAL_DISKS))

    def _find_interfaces(self) -> frozenset[bytes]:
        """Return the interfaces with hardware behind them; in a container, where none has, all but the loopback."""
        names = [name for name in self._names("sys/class/net") if name != "lo"]
        real = [name for name in names if (self._root / "sys/class/net" / name / "device").exists()]
        return frozenset(name.encode() for name in real or names)

    def _names(self, folder: str) -> list[str]:
        try:
            return [path.name for path in (self._root / folder).iterdir()]
        except OSError:
            return []
