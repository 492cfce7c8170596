"""Results on their way to wherever they are stored: bounded, the oldest go first and are counted."""

import threading
from collections import deque
from typing import Final

from fleet.agent.probes.result import ProbeResult

MOST: Final = 20_000


class Collected:
    """A sink for a schedule; another thread takes from it. lost: results that there was no room for."""

    def __init__(self, most: int = MOST) -> None:
        self._results: deque[ProbeResult] = deque()
        self._most = most
        self._lock = threading.Lock()
        self.lost = 0

    def __call__(self, result: ProbeResult) -> None:
        """Keep a result."""
        with self._lock:
            if len(self._results) >= self._most:
                self._results.popleft()
                self.lost += 1
            self._results.append(result)

    def take(self, most: int = 1_000) -> list[ProbeResult]:
        """Return the oldest results and forget them."""
        with self._lock:
            return [self._results.popleft() for _ in range(min(most, len(self._results)))]

    def put_back(self, results: list[ProbeResult]) -> None:
        """Keep again what could not be handed on, as far as there is room."""
        with self._lock:
            room = self._most - len(self._results)
            kept = results[-room:] if room > 0 else []
            self.lost += len(results) - len(kept)
            self._results.extendleft(reversed(kept))
