"""Starts probes one after the other and lets few open connections at once: those at the same moment distort one another."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

AT_ONCE: Final = 20
SPACING_SECONDS: Final = 0.005
# What is not open by then waits for somebody else and keeps nobody busy: targets that are dead hold up no others.
LONGEST_HOLD_SECONDS: Final = 1.0


class Gate:
    """at_once: probes that open their connections together. spacing_seconds: between two starts."""

    def __init__(self, at_once: int = AT_ONCE, spacing_seconds: float = SPACING_SECONDS) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._spacing = spacing_seconds
        self._turn = asyncio.Lock()
        self._began = float("-inf")

    @contextlib.asynccontextmanager
    async def through(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for room and for our turn. Yields what gives the room to the next one; the end does, and a second."""
        await self._room.acquire()
        is_held = True

        def leave() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._room.release()

        timer: asyncio.TimerHandle | None = None
        try:
            async with self._turn:
                wait = self._began + self._spacing - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                self._began = time.monotonic()
            timer = asyncio.get_running_loop().call_later(LONGEST_HOLD_SECONDS, leave)
            yield leave
        finally:
            if timer is not None:
                timer.cancel()
            leave()
