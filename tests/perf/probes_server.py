"""A server that holds each request for 20 ms, then answers and closes, plain and TLS: `python -m tests.perf.probes_server`.

It prints its two ports. The certificate is made at start and trusted by nobody.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

HOLD_SECONDS = 0.020
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nok"


class Holding(asyncio.Protocol):
    """Answers what has an empty line in it 20 ms after it came."""

    def connection_made(self, transport):
        self.transport = transport
        self.rest = b""

    def data_received(self, data):
        self.rest += data
        if b"\r\n\r\n" in self.rest:
            self.rest = b""
            asyncio.get_running_loop().call_later(HOLD_SECONDS, self.answer)

    def answer(self):
        if not self.transport.is_closing():
            self.transport.write(ANSWER)
            self.transport.close()


async def main():
    """Serve until standard input ends."""
    from tests.probes.servers import Certificates

    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory(prefix="fleetdeck-probes-") as directory:
        context = Certificates(Path(directory)).server()
    plain = await loop.create_server(Holding, "127.0.0.1", 0, backlog=1024)
    tls = await loop.create_server(Holding, "127.0.0.1", 0, backlog=1024, ssl=context)
    print(plain.sockets[0].getsockname()[1], tls.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
