"""Staying small: the agent shares its machine with those who pay for it."""

import ctypes
import gc
from typing import Final

# Numbers of glibc's mallopt.
M_ARENA_MAX: Final = -8
M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 128 * 1024


def limit() -> None:
    """Keep all threads' allocations in one arena, and large ones apart, so that they go back to the system when freed.

    Else each arena keeps what its busiest moment needed, and the compiler's work during imports stays for good.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


def trim() -> None:
    """Give back what importing took, and leave what stays out of garbage collection."""
    gc.collect()
    gc.freeze()
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
