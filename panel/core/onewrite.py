"""uvicorn's HTTP protocol with one write a response: it writes head and body apart, and each write wakes the other side."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_PASSED_ON: Final = ("get_extra_info", "is_closing", "pause_reading", "resume_reading", "is_reading", "set_protocol")


class _Gathering(asyncio.Transport):
    """A transport that sends in one piece what is written within one turn of the event loop."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self.raw: Final = transport
        self._parts: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        for name in _PASSED_ON:
            setattr(self, name, getattr(transport, name))

    def write(self, data: Any) -> None:
        """Send this with what else is written in this turn."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def close(self) -> None:
        """Send what was written and close."""
        self.flush()
        self.raw.close()

    def abort(self) -> None:
        """Close at once."""
        self._parts.clear()
        self.raw.abort()

    def flush(self) -> None:
        """Send what was written so far."""
        parts, self._parts = self._parts, []
        if parts and not self.raw.is_closing():
            self.raw.write(parts[0] if len(parts) == 1 else b"".join(parts))


class OneWriteProtocol(HttpToolsProtocol):
    """What `--http` names on uvicorn's command line."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection."""
        super().connection_made(_Gathering(transport))  # type: ignore[arg-type]  # uvicorn says Transport

    def handle_websocket_upgrade(self) -> None:
        """Leave a socket's frames as they are: one each, written as they come."""
        if isinstance(self.transport, _Gathering):
            self.transport.flush()
            self.transport = self.transport.raw
        super().handle_websocket_upgrade()
