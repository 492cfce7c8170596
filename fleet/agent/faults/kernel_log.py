"""XIDs in the kernel's log: all of them, those from before the agent started included, with the process that is named."""

import json
import logging
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from fleet.agent import clock
from fleet.agent.faults.ledger import Sighting
from fleet.agent.faults.pci import canonical_bus_id

KERNEL_LOG_VARIABLE: Final = "FLEETDECK_KERNEL_LOG"
KERNEL_LOG: Final = "/dev/kmsg"
# However much the kernel has to say, it is looked at no more than once in this time.
PAUSE_SECONDS: Final = 1.0
_RECORD_BYTES: Final = 8_192
_RECORD: Final = re.compile(r"\d+,(\d+),(\d+),[^;]*;(.*)")
_XID: Final = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)(?:, (.*))?")
_SXID: Final = re.compile(r"SXid \(PCI:([0-9a-fA-F:.]+)\): (\d+)(?:, (.*))?")

log = logging.getLogger(__name__)


def parse_line(line: str, at_ms: int) -> Sighting | None:
    """Return the XID or SXID of one line of the kernel's log, None when it has none."""
    for kind, pattern in (("xid", _XID), ("sxid", _SXID)):
        match = pattern.search(line)
        if match:
            try:
                bus = canonical_bus_id(match[1])
            except ValueError:
                return None
            return Sighting(at_ms, int(match[2]), "kernel_log", kind, "", bus, (match[3] or "")[:500])
    return None


class KernelLog:
    """Follows /dev/kmsg in a thread.

    cursor: file that remembers how far the last run came, so that none is told twice. is_live: what was there at the start
    has been read.
    """

    def __init__(self, note: Callable[[Sighting], None], cursor: Path, path: str | None = None) -> None:
        self._path = os.environ.get(KERNEL_LOG_VARIABLE, KERNEL_LOG) if path is None else path
        self._note = note
        self._cursor = cursor
        self._last = self._saved = self._read_cursor()
        self._is_stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_live = False

    def start(self) -> bool:
        """Begin to follow; returns whether the log is readable, which in containers and for ordinary users it is not."""
        if not self._path:
            return False
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            log.info("The kernel log is not readable (%s): XIDs come from NVML alone.", error.strerror)
            return False
        self._thread = threading.Thread(target=self._follow, args=(descriptor,), name="kernel-log", daemon=True)
        self._thread.start()
        return True

    def stop(self) -> None:
        """Ask it to end; it does within a second."""
        self._is_stopped.set()
        if self._thread is not None:
            self._thread.join(2 * PAUSE_SECONDS)

    def _follow(self, descriptor: int) -> None:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        try:
            while not self._is_stopped.is_set():
                self._read(descriptor)
                self.is_live = True
                self._is_stopped.wait(PAUSE_SECONDS)
                while not self._is_stopped.is_set() and not poll.poll(1000 * PAUSE_SECONDS):
                    pass
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> None:
        """Take what is there: once live, it happened just now; before, the stamp since boot tells when."""
        for record in _records(descriptor):
            match = _RECORD.match(record)
            if match is None or int(match[1]) <= self._last:
                continue
            at_ms = clock.now().at_ms if self.is_live else _wall_clock_ms(int(match[2]))
            sighting = parse_line(match[3], at_ms)
            if sighting is not None:
                self._note(sighting)
                self._last = int(match[1])

    def save_cursor(self) -> None:
        """Remember on disk how far it came: call it once what was noted is on disk too."""
        if self._last == self._saved:
            return
        with suppress(OSError):
            self._cursor.write_text(json.dumps({"os_boot_id": clock.os_boot_id(), "sequence": self._last}))
            self._saved = self._last

    def _read_cursor(self) -> int:
        try:
            saved = json.loads(self._cursor.read_text())
            return int(saved["sequence"]) if saved["os_boot_id"] == clock.os_boot_id() else -1
        except (OSError, ValueError, KeyError, TypeError):
            return -1


def _records(descriptor: int) -> Iterator[str]:
    """Yield the records that are there now: the device gives one a read, a file or a pipe as many lines as fit."""
    rest = b""
    while True:
        try:
            data = os.read(descriptor, _RECORD_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:  # records were overwritten before they were read: the next read goes on after the gap
            continue
        except OSError as error:
            log.warning("The kernel log cannot be read any more: %s.", error.strerror)
            return
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if b"Xid (PCI:" in line:
                yield line.decode(errors="replace")


def _wall_clock_ms(microseconds_since_boot: int) -> int:
    return clock.now().at_ms - (time.monotonic_ns() // 1_000_000 - microseconds_since_boot // 1000)
