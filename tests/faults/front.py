"""`python -m tests.faults.front PORT UPSTREAM '{…}'`: what stands before an engine: a gateway that thinks, TLS, no keep-alive.

wait_ms: before each request is passed on. certificate: a PEM file with key, for TLS. closes: `Connection: close` on every answer.
"""

import asyncio
import json
import ssl
import sys

from tests.probes.servers import read_request


class Front:
    """See the module."""

    def __init__(self, upstream, *, wait_ms=0.0, certificate="", closes=False):
        self.upstream, self.wait, self.closes = upstream, wait_ms / 1000, closes
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)

    async def serve(self, reader, writer):
        try:
            while True:
                asked = await read_request(reader)
                await asyncio.sleep(self.wait)
                await self.pass_on(asked, writer)
                if self.closes:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def pass_on(self, asked, writer):
        inside, to = await asyncio.open_connection("127.0.0.1", self.upstream)
        try:
            lines = [f"{asked.method} {asked.path} HTTP/1.1"]
            lines += [f"{name}: {value}" for name, value in asked.headers.items() if name != "connection"]
            to.write("\r\n".join([*lines, "", ""]).encode() + asked.body)
            head = await inside.readuntil(b"\r\n\r\n")
            if self.closes:
                head = head.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
            writer.write(head)
            await self.body(head.lower(), inside, writer)
            await writer.drain()
        finally:
            to.close()

    async def body(self, head, inside, writer):
        """Pass a body on as it comes, to its end by its own framing."""
        if b"transfer-encoding: chunked" not in head:
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            writer.write(await inside.readexactly(length))
            return
        while True:
            size = await inside.readuntil(b"\r\n")
            data = await inside.readexactly(int(size, 16) + 2)
            writer.write(size + data)
            await writer.drain()
            if int(size, 16) == 0:
                return


async def main(port, upstream, settings):
    front = Front(int(upstream), **json.loads(settings))
    await asyncio.start_server(front.serve, "0.0.0.0", int(port), ssl=front.context)
    print("ready", flush=True)  # noqa: T201  # who started this waits for it
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
