"""The two clocks that stamp every reading: the wall clock, which may be wrong or jump, and the one since boot."""

import time
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Moment(NamedTuple):
    """One instant on both clocks, in milliseconds; monotonic_ms counts since the machine's boot, its sleep included."""

    at_ms: int
    monotonic_ms: int


def now() -> Moment:
    """Return this instant."""
    return Moment(time.time_ns() // 1_000_000, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)


@cache
def os_boot_id() -> str:
    """Return the kernel's name for this run of the operating system; monotonic stamps of two runs do not compare."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
