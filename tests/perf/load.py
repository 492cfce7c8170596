"""Requests over many connections, one after the other on each, prepared beforehand and sent as cheaply as can be."""

import asyncio
import time

import uvloop


def request(port, path, headers, body):
    """Return one HTTP request as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode() + b"\r\n" + body


class Connection(asyncio.Protocol):
    """Sends one request after the other over one connection; costs the measured machine as little as it can."""

    def __init__(self, requests, done):
        self._requests = iter(requests)
        self._done = done
        self._buffer = b""
        self._sent_at = 0.0
        self.seconds = []

    def connection_made(self, transport):
        self._transport = transport
        self._next()

    def data_received(self, data):
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        if len(body) < int(length.partition(b":")[2]):
            return
        self._buffer = b""
        self.seconds.append(time.perf_counter() - self._sent_at)
        if head[9:10] != b"2":
            self._done.set_exception(RuntimeError(f"{head[:60]!r} {body[:300]!r}"))
            self._transport.close()
            return
        self._next()

    def _next(self):
        following = next(self._requests, None)
        if following is None:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._sent_at = time.perf_counter()
        self._transport.write(following)


async def _send(port, streams):
    loop = asyncio.get_running_loop()
    done = [loop.create_future() for _ in streams]
    began = time.perf_counter()
    connections = [
        (await loop.create_connection(lambda s=stream, d=end: Connection(s, d), "127.0.0.1", port))[1]
        for stream, end in zip(streams, done, strict=True)
    ]
    await asyncio.gather(*done)
    elapsed = time.perf_counter() - began
    return sum(map(len, streams)) / elapsed, [one for connection in connections for one in connection.seconds]


def send_all(port, streams):
    """Send each stream over a connection of its own; returns requests per second and each one's seconds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_send(port, streams))
