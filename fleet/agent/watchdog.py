"""Ends the process when its work has stopped, so that whoever supervises it starts it again.

Driver calls and requests have deadlines of their own; this is for what nobody thought of.
"""

import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

FROZEN_SECONDS: Final = 900.0
LOOK_SECONDS: Final = 15.0
EXIT_FROZEN: Final = 75

log = logging.getLogger(__name__)


def _exit() -> None:
    faulthandler.dump_traceback(sys.stderr)
    os._exit(EXIT_FROZEN)


class Watchdog:
    """Looks now and then at when work was last done. last_done: monotonic seconds of the least recent kind of work."""

    def __init__(
        self, last_done: Callable[[], float], *, frozen_seconds: float = FROZEN_SECONDS, end: Callable[[], None] = _exit
    ) -> None:
        self._last_done = last_done
        self._frozen_seconds = frozen_seconds
        self._end = end
        self._is_stopped = threading.Event()

    def start(self) -> None:
        """Begin to look, in a thread."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop looking."""
        self._is_stopped.set()

    def look(self) -> bool:
        """End the process if nothing was done for too long; returns whether it came to that."""
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
