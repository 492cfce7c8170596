"""A connection that notes when each piece came, before anybody is woken up to read it."""

import asyncio
import time
from collections import deque
from typing import Final

# As much waits to be read, then the other side has to wait: a server that floods us fills no memory.
HIGH_BYTES: Final = 256 * 1024


class LostError(Exception):
    """The connection broke off. The sentence says how the system names it."""


class Link(asyncio.Protocol):
    """One TCP connection, with or without TLS. made_at: when it was ready to use (after the TLS handshake)."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # set before anybody gets hold of this
        self.made_at = 0.0
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._waiting = 0
        self._is_ended = self._is_paused = False
        self._error: str | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note when."""
        self.made_at = time.monotonic()
        self.transport = transport  # type: ignore[assignment]  # of a stream it is one that reads and writes
        self.transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        """Note when."""
        self._pieces.append((time.monotonic(), data))
        self._waiting += len(data)
        if self._waiting > HIGH_BYTES and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        """Note it; the transport closes by itself."""
        self._is_ended = True
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note it."""
        self._is_ended = True
        if exc is not None:
            self._error = str(getattr(exc, "strerror", None) or exc or type(exc).__name__)
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        """Let `write` wait until the system has taken everything."""
        self._writer = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Let `write` go on."""
        _wake(self._writer)
        self._writer = None

    @property
    def is_usable(self) -> bool:
        """Whether a request may be sent on it: open, and nothing has come that nobody asked for."""
        return not (self._is_ended or self._pieces or self.transport.is_closing())

    async def write(self, data: bytes) -> float:
        """Send; returns when the system had taken all of it. Raises LostError."""
        self.transport.write(data)
        if self._writer is not None:
            await self._writer
        if self._error is not None:
            raise LostError(self._error)
        return time.monotonic()

    async def read(self) -> tuple[float, bytes]:
        """Return the next piece and when it came; b"" at the end. Raises LostError."""
        while not self._pieces:
            if self._error is not None:
                raise LostError(self._error)
            if self._is_ended:
                return time.monotonic(), b""
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        stamp, data = self._pieces.popleft()
        self._waiting -= len(data)
        if self._is_paused and self._waiting <= HIGH_BYTES // 2 and not self._is_ended:
            self._is_paused = False
            self.transport.resume_reading()
        return stamp, data

    def abort(self) -> None:
        """Close at once, without waiting for anything."""
        if self.transport is not None:
            self.transport.abort()


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
