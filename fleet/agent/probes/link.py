"""A connection that notes when each piece came, before anybody is woken up to read it; TLS happens in between."""

import asyncio
import contextlib
import socket
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
    """One TCP connection. session: TLS for it, None for none. secured_at: when the handshake was over (monotonic).

    ahead: what is sent as soon as it can be, before anybody wakes up: the first request. said: how many bytes of the first
    message (the session's hello, else what goes ahead) the socket took before there was a transport.
    """

    def __init__(self, session: Session | None = None, ahead: bytes = b"") -> None:
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # set before anybody gets hold of this
        self.session = session
        self.said = 0
        self.ahead = ahead
        self.ahead_began: float | None = None
        self._ahead_ended = 0.0
        self.secured_at: float | None = None
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._waiting = 0
        self._is_ended = self._is_paused = False
        self._error: str | None = None
        self._tls_error: ssl.SSLError | ssl.CertificateError | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say the first message, as far as the socket has not taken it yet."""
        self.transport = transport  # type: ignore[assignment]  # of a stream it is one that reads and writes
        self.transport.set_write_buffer_limits(high=0)
        rest = self._first[self.said :]
        if rest:
            self.transport.write(rest)
            self._ahead_ended = time.monotonic()

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
        if is_done:
            self.secured_at = self.ahead_began = time.monotonic()
            answer += session.encrypt(self.ahead)
        if answer:
            self.transport.write(answer)
        self._ahead_ended = time.monotonic()

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

    @property
    def _first(self) -> bytes:
        return self.ahead if self.session is None else self.session.hello

    def say_first(self, sock: socket.socket) -> None:
        """Send the first message before there is a transport: the other side works while it is made."""
        if self.session is None:
            self.ahead_began = time.monotonic()
        if self._first:
            with contextlib.suppress(OSError):  # whatever is wrong, the transport will find it
                self.said = sock.send(self._first)
            self._ahead_ended = time.monotonic()

    async def sent_ahead(self) -> tuple[float, float]:
        """Return when sending what went ahead began, and when the system had taken all of it. Raises LostError."""
        began, ended = self.ahead_began, self._ahead_ended
        if self._writer is not None:
            await self._writer
            ended = time.monotonic()
        if self._error is not None and not self._pieces:
            raise LostError(self._error)
        self.ahead = b""
        return (ended if began is None else began), ended

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
