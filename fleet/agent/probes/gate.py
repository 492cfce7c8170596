"""Starts probes one after the other and few at once: many new connections at the same moment distort one another."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final

AT_ONCE: Final = 20
SPACING_SECONDS: Final = 0.005


class Gate:
    """at_once: probes under way together. spacing_seconds: between two starts."""

    def __init__(self, at_once: int = AT_ONCE, spacing_seconds: float = SPACING_SECONDS) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._spacing = spacing_seconds
        self._turn = asyncio.Lock()
        self._began = float("-inf")

    @contextlib.asynccontextmanager
    async def through(self) -> AsyncIterator[None]:
        """Wait for room and for our turn; the room is free again at the end."""
        async with self._room:
            async with self._turn:
                wait = self._began + self._spacing - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                self._began = time.monotonic()
            yield
