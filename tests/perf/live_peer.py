"""The limit: `websockets.broadcast` to every socket, one frame for each line on standard input."""

import asyncio
import sys

import websockets
from websockets.asyncio.server import broadcast, serve


async def main(port):
    """Serve until standard input ends."""
    sockets = set()

    async def keep(socket):
        sockets.add(socket)
        await socket.wait_closed()
        sockets.discard(socket)

    async with serve(keep, "127.0.0.1", port, compression=None):
        print("ready", websockets.__version__, flush=True)
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            broadcast(sockets, line.decode().rstrip("\n"))


asyncio.run(main(int(sys.argv[1])))
