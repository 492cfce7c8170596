"""uvicorn with one write a response: the same bytes, fewer pieces; sockets and closing work as before."""

import asyncio

import uvicorn
from uvicorn.server import ServerState

from panel.core.onewrite import OneWriteProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: panel\r\n%s\r\n"


class FakeTransport(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.written, self.is_closed, self.protocol = [], False, None

    def write(self, data):
        self.written.append(bytes(data))

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed

    def abort(self):
        self.is_closed = True

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass

    def is_reading(self):
        return True

    def set_protocol(self, protocol):
        self.protocol = protocol


async def two_parts(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
    await send({"type": "http.response.body", "body": b"abc", "more_body": True})
    if scope["path"] == "/slow":
        await asyncio.sleep(0.01)
    await send({"type": "http.response.body", "body": b"def"})


def answered(request, *, app=two_parts, ws="none"):
    """Return the transport after a request was answered."""

    async def run():
        config = uvicorn.Config(app, http=OneWriteProtocol, ws=ws, log_level="critical", lifespan="off")
        config.load()
        state, transport = ServerState(), FakeTransport()
        protocol = OneWriteProtocol(config, state, {})
        protocol.connection_made(transport)
        protocol.data_received(request)
        while state.tasks:
            await asyncio.gather(*state.tasks)
        await asyncio.sleep(0)
        protocol.connection_lost(None)
        return transport

    return asyncio.run(run())


def test_head_and_body_are_written_in_one_piece():
    (response,) = answered(REQUEST % b"").written
    assert response.startswith(b"HTTP/1.1 200 OK\r\n")
    assert response.endswith(b"\r\n\r\nabcdef")


def test_what_comes_later_is_not_waited_for():
    first, last = answered((REQUEST % b"").replace(b"GET / ", b"GET /slow ")).written
    assert first.endswith(b"abc")
    assert last == b"def"


def test_a_connection_that_is_to_close_closes_after_the_response():
    transport = answered(REQUEST % b"Connection: close\r\n")
    assert transport.is_closed
    assert b"".join(transport.written).endswith(b"abcdef")


def test_a_request_that_cannot_be_read_is_answered_before_the_connection_closes():
    transport = answered(b"nonsense\r\n\r\n")
    assert transport.written[0].startswith(b"HTTP/1.1 400 ")
    assert transport.is_closed


def test_a_socket_writes_to_the_connection_itself():
    headers = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )

    async def accept(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})

    transport = answered(REQUEST % headers, app=accept, ws="websockets-sansio")
    assert transport.protocol.transport is transport
    assert transport.written[0].startswith(b"HTTP/1.1 101 ")
