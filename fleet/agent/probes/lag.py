"""How late this process wakes up: a prober that is busy itself measures itself."""

import asyncio
import contextlib
import math
import time
from collections import deque
from typing import Final

PERIOD_SECONDS: Final = 0.05
KEPT: Final = 12_000  # ten minutes, the longest that a probe may last


class LoopLag:
    """Sleeps 50 ms over and over and notes by how much each sleep was too long."""

    def __init__(self) -> None:
        self._noted: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._due: float | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin in the running event loop, unless it runs there already."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._watch(), name="loop lag")

    async def stop(self) -> None:
        """End."""
        task, self._task, self._due = self._task, None, None
        if task:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        while True:
            self._due = time.monotonic() + PERIOD_SECONDS
            await asyncio.sleep(PERIOD_SECONDS)
            now = time.monotonic()
            self._noted.append((now, now - self._due))

    def since(self, moment: float) -> float | None:
        """Return the 99th percentile of the lag in seconds after a monotonic moment, the sleep in progress included.

        None while nothing is known. For less than five seconds it is the largest: one blocked moment spoils one probe.
        """
        found = []
        for noted_at, lag in reversed(self._noted):
            if noted_at < moment:
                break
            found.append(lag)
        if self._due is not None:
            found.append(time.monotonic() - self._due)
        if not found:
            return None
        found.sort()
        return max(found[math.ceil(0.99 * len(found)) - 1], 0.0)
