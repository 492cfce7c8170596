"""`python -m tests.faults.line NS_A NS_B '{"delay_ms": 20, "loss": 0.05, "rate_mbit": 2}'`: a line between two namespaces.

Both ends are TUN devices, so that everything above (SYNs and their retransmission, windows, acknowledgements) is the kernel's
own TCP. This process only holds packets back (delay), forgets some (loss) and lets no more through than the line takes (rate):
what `tc netem` does, on kernels that are built without it.
"""

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
DEVICE = "line0"
MTU = 1500
MOST_WAITING = 2_000  # packets on the line; more are dropped, as by any router


def enter(namespace):
    """Move this thread into a namespace by name."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(handle, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(handle)


def tun_in(namespace):
    """Return an open TUN device in a namespace."""
    enter(namespace)
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH14s", DEVICE.encode(), IFF_TUN | IFF_NO_PI, b""))
    return handle


class Line:
    """delay_ms: each way, half of the round trip. loss: share of packets. rate_mbit: each way, None for no limit."""

    def __init__(self, ends, *, delay_ms=0.0, loss=0.0, rate_mbit=None, seed=0):
        self._other = {ends[0]: ends[1], ends[1]: ends[0]}
        self._delay, self._loss, self._rate = delay_ms / 1000, loss, rate_mbit
        self._free = dict.fromkeys(ends, 0.0)
        self._held = []
        self._count = 0
        self._drawn = random.Random(seed)

    def run(self):
        """Carry packets until the parent closes its end of standard input."""
        ends = list(self._other)
        while True:
            wait = max(self._held[0][0] - time.monotonic(), 0.0) if self._held else None
            readable, _, _ = select.select([*ends, 0], [], [], wait)
            if 0 in readable:
                return
            for end in readable:
                self._take(end)
            self._give()

    def _take(self, end):
        for _ in range(64):
            try:
                packet = os.read(end, MTU + 100)
            except BlockingIOError:
                return
            if self._drawn.random() < self._loss or len(self._held) >= MOST_WAITING:
                continue
            now = time.monotonic()
            if self._rate:
                begin = max(now, self._free[end])
                self._free[end] = now = begin + len(packet) * 8 / (self._rate * 1e6)
            self._count += 1
            heapq.heappush(self._held, (now + self._delay, self._count, self._other[end], packet))

    def _give(self):
        while self._held and self._held[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(self._held)
            try:
                os.write(end, packet)
            except (BlockingIOError, OSError):
                continue


def main(first, second, settings):
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    ends = [tun_in(first), tun_in(second)]
    os.close(home)
    print("ready", flush=True)  # noqa: T201  # who started this waits for it
    Line(ends, **json.loads(settings)).run()


if __name__ == "__main__":
    main(*sys.argv[1:4])
