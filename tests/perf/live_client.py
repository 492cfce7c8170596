"""A thousand browsers in one process, as cheap as can be: the handshake by hand, then frames counted, not parsed."""

import asyncio
import base64
import os
import struct
import time


class Counter:
    """Frames received by all sockets, and an event when a round is complete.

    smallest: shorter frames (heartbeats, once the snapshots have come) do not count.
    """

    def __init__(self):
        self.smallest = 0
        self.received = 0
        self.wanted = 0
        self.complete = asyncio.Event()
        self.times = []

    def expect(self, count):
        """Begin a round of `count` frames."""
        self.received, self.wanted, self.times = 0, count, []
        self.complete.clear()

    def frame(self, length):
        """Count one frame, with the time it came."""
        if length < self.smallest:
            return
        self.received += 1
        self.times.append(time.perf_counter())
        if self.received == self.wanted:
            self.complete.set()


class Browser(asyncio.Protocol):
    """One socket: sends its handshake, then counts the server's frames (never masked, maybe split over reads)."""

    def __init__(self, counter, path, headers, is_open):
        self.counter, self.path, self.headers, self.is_open = counter, path, headers, is_open
        self.buffer = b""
        self.is_upgraded = False

    def connection_made(self, transport):
        self.transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {self.path} HTTP/1.1",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        transport.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    def send(self, text):
        """Send a short text frame, masked with zeros."""
        payload = text.encode()
        head = (
            bytes([0x81, 0x80 | len(payload)]) if len(payload) < 126 else b"\x81\xfe" + struct.pack("!H", len(payload))
        )
        self.transport.write(head + b"\0\0\0\0" + payload)

    def data_received(self, data):
        self.buffer += data
        if not self.is_upgraded:
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            if b" 101 " not in head.split(b"\r\n")[0] + b" ":
                raise ConnectionError(head.split(b"\r\n")[0].decode())
            self.is_upgraded, self.buffer = True, rest
            if not self.is_open.done():
                self.is_open.set_result(self)
        self._count()

    def _count(self):
        at, data = 0, self.buffer
        while len(data) - at >= 2:
            opcode, length, head = data[at] & 0x0F, data[at + 1] & 0x7F, 2
            if length == 126:
                if len(data) - at < 4:
                    break
                length, head = struct.unpack_from("!H", data, at + 2)[0], 4
            elif length == 127:
                if len(data) - at < 10:
                    break
                length, head = struct.unpack_from("!Q", data, at + 2)[0], 10
            if len(data) - at < head + length:
                break
            if opcode == 1:
                self.counter.frame(length)
            elif opcode == 9:  # unanswered, both servers would end the connection
                body = data[at + head : at + head + length]
                self.transport.write(bytes([0x8A, 0x80 | length]) + b"\0\0\0\0" + body)
            at += head + length
        self.buffer = data[at:]


async def connect(count, *, port, path, headers, counter):
    """Open `count` sockets on loopback, fifty at a time."""
    loop, browsers = asyncio.get_running_loop(), []
    all_headers = {"Host": f"127.0.0.1:{port}", "Origin": f"http://127.0.0.1:{port}", **headers}
    for start in range(0, count, 50):
        opening = []
        for _ in range(start, min(start + 50, count)):
            is_open = loop.create_future()
            await loop.create_connection(lambda f=is_open: Browser(counter, path, all_headers, f), "127.0.0.1", port)
            opening.append(is_open)
        browsers += await asyncio.wait_for(asyncio.gather(*opening), 30)
    return browsers
