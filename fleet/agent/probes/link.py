"""A connection that notes when each piece came, before anybody is woken up to read it; TLS happens in between."""

import asyncio
import ssl
import time
from collections import deque
from typing import Final

from fleet.agent.probes.tls import Session

# As much waits to be read, then the other side has to wait: a server that floods us fills no memory.
HIGH_BYTES: Final = 256 * 1024


class LostError(Exception):
    """The connection broke off. The sentence says how the system names it."""


class Link(asyncio.Protocol):
    """One TCP connection. session: TLS for it, None for none. said: bytes of its hello that were sent
    already. secured_at: when the handshake was over (monotonic)."""

    def __init__(self, session: Session | None = None) -> None:
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # set before anybody gets hold of this
        self.session = session
        self.said = 0
        self.secured_at: float | None = None
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._waiting = 0
        self._is_ended = self._is_paused = False
        self._error: str | None = None
        self._tls_error: ssl.SSLError | ssl.CertificateError | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake, if there is one."""
        self.transport = transport  # type: ignore[assignment]  # of a stream it is one that reads and writes
        self.transport.set_write_buffer_limits(high=0)
        if self.session is not None:
            self.transport.write(self.session.hello[self.said :])

    def data_received(self, data: bytes) -> None:
        """Note when."""
        stamp = time.monotonic()
        if self.session is None:
            self._keep(stamp, data)
        else:
            if self.secured_at is None:
                self._shake_hands(self.session, data)
                data = b""
            if self.secured_at is not None:
                self._decrypt(self.session, stamp, data)
        _wake(self._reader)

    def _shake_hands(self, session: Session, data: bytes) -> None:
        try:
            answer, is_done = session.shake_hands(data)
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._tls_error = error
            answer, is_done = session.alert(), False
        if answer:
            self.transport.write(answer)
        if is_done:
            self.secured_at = time.monotonic()
            _wake(self._reader)

    def _decrypt(self, session: Session, stamp: float, data: bytes) -> None:
        try:
            pieces, is_ended = session.decrypt(data)
        except ssl.SSLError as error:
            self._error, self._is_ended = f"TLS: {error.reason or error}", True
            return
        for piece in pieces:
            self._keep(stamp, piece)
        self._is_ended = self._is_ended or is_ended

    def _keep(self, stamp: float, data: bytes) -> None:
        self._pieces.append((stamp, data))
        self._waiting += len(data)
        if self._waiting > HIGH_BYTES and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

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

    async def secured(self) -> float:
        """Wait for the end of the handshake; return when it was. Raises ssl.SSLError, ssl.CertificateError, LostError."""
        while self.secured_at is None:
            if self._tls_error is not None:
                raise self._tls_error
            if self._is_ended:
                raise LostError(self._error or "closed during the handshake")
            await self._news()
        return self.secured_at

    async def write(self, data: bytes) -> float:
        """Send; returns when the system had taken all of it. Raises LostError."""
        self.transport.write(data if self.session is None else self.session.encrypt(data))
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
            await self._news()
        stamp, data = self._pieces.popleft()
        self._waiting -= len(data)
        if self._is_paused and self._waiting <= HIGH_BYTES // 2 and not self._is_ended:
            self._is_paused = False
            self.transport.resume_reading()
        return stamp, data

    async def _news(self) -> None:
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def abort(self) -> None:
        """Close at once, without waiting for anything."""
        if self.transport is not None:
            self.transport.abort()


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
