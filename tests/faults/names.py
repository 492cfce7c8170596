"""`python -m tests.faults.names PORT ADDRESS WAIT_MS`: a name server with one address for every name, after a while."""

import asyncio
import sys


class Names(asyncio.DatagramProtocol):
    """Answers A with the address, everything else with nothing."""

    def __init__(self, address, wait_ms):
        self.address, self.wait = bytes(int(part) for part in address.split(".")), wait_ms / 1000

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        asyncio.get_running_loop().call_later(self.wait, self.transport.sendto, self.answer(data), peer)

    def answer(self, data):
        end = data.index(b"\0", 12) + 5
        question = data[12:end]
        is_a = question[-4:-2] == b"\0\x01"
        head = data[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if is_a else b"\0\0") + b"\0\0\0\0"
        record = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04" + self.address if is_a else b""
        return head + question + record


async def main(port, address, wait_ms):
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: Names(address, float(wait_ms)), local_addr=("127.0.0.1", int(port)))
    print("ready", flush=True)  # noqa: T201  # who started this waits for it
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
