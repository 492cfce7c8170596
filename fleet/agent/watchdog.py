"""Ends the process when its work has stopped, or when it has grown far too large: whoever supervises it starts it again.

Driver calls and requests have deadlines of their own; this is for what nobody thought of.
"""

import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

FROZEN_SECONDS: Final = 900.0
LOOK_SECONDS: Final = 15.0
# Several times what an agent needs. The service has no limit of memory: it would hold for the engines that it started, too.
MOST_MEMORY_BYTES: Final = 384 * 1024 * 1024
EXIT_FROZEN: Final = 75

log = logging.getLogger(__name__)


def _exit() -> None:
    faulthandler.dump_traceback(sys.stderr)
    os._exit(EXIT_FROZEN)


def resident_bytes() -> int:
    """Return how much memory this process has, 0 where the kernel does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class Watchdog:
    """Looks now and then at when work was last done. last_done: monotonic seconds of the least recent kind of work."""

    def __init__(
        self,
        last_done: Callable[[], float],
        *,
        frozen_seconds: float = FROZEN_SECONDS,
        end: Callable[[], None] = _exit,
        memory_bytes: Callable[[], int] = resident_bytes,
    ) -> None:
        self._last_done = last_done
        self._frozen_seconds = frozen_seconds
        self._end = end
        self._memory_bytes = memory_bytes
        self._is_stopped = threading.Event()

    def start(self) -> None:
        """Begin to look, in a thread."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop looking."""
        self._is_stopped.set()

    def look(self) -> bool:
        """End the process if nothing was done for too long, or it is too large; returns whether it came to that."""
        used = self._memory_bytes()
        if used > MOST_MEMORY_BYTES:
            log.critical("This agent uses %.0f MB, far more than it needs: it gives up.", used / 1e6)
            self._end()
            return True
        still = time.monotonic() - self._last_done()
        if still < self._frozen_seconds:
            return False
        log.critical(
            "Nothing was sampled or reported for %.0f min although it was due: this agent gives up.", still / 60
        )
        self._end()
        return True

    def _watch(self) -> None:
        while not self._is_stopped.wait(LOOK_SECONDS):
            if self.look():
                return
