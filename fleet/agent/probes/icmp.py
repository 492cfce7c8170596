"""ICMP echo by an unprivileged datagram socket, where the system lets this group of users have one."""

import asyncio
import secrets
import socket
import struct
import time
from typing import Final

from fleet.agent.probes.dial import allowed_addresses
from fleet.agent.probes.job import Job
from fleet.agent.probes.result import ProbeError

REQUEST: Final = {4: 8, 6: 128}
REPLY: Final = {4: 0, 6: 129}
PAYLOAD_BYTES: Final = 16
_HEADER: Final = struct.Struct("!BBHHH")


async def probe(job: Job) -> None:
    """Send one echo request and wait for its reply. Raises ProbeError: dns, connect, skipped where it is not permitted."""
    address = (await allowed_addresses(job.way, job.target, job.trace))[0]
    family = 6 if ":" in address else 4
    trace = job.trace
    trace.address, trace.family, trace.tried = address, 6 if family == 6 else 4, 1
    sock = _socket(family)
    try:
        sock.setblocking(False)  # noqa: FBT003  # the socket module takes it no other way
        sock.connect((address, 0))
        payload = secrets.token_bytes(PAYLOAD_BYTES)
        packet = _packet(family, 1, payload)
        loop = asyncio.get_running_loop()
        trace.phase, trace.send_began = "send", time.monotonic()
        await loop.sock_sendall(sock, packet)
        trace.sent, trace.phase = time.monotonic(), "wait"
        while not _is_reply(await loop.sock_recv(sock, 2048), family, payload):
            continue
    except OSError as error:
        raise ProbeError("connect", "unreachable", f"{address}: {error.strerror or error}") from None
    finally:
        sock.close()
    trace.headers = trace.ended = time.monotonic()
    trace.phase = "done"


def _socket(family: int) -> socket.socket:
    try:
        if family == 6:
            return socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6)
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    except PermissionError:
        detail = "net.ipv4.ping_group_range does not hold the group of this process"
        raise ProbeError("skipped", "not_permitted", detail) from None
    except OSError as error:
        raise ProbeError("skipped", "not_supported", str(error.strerror or error)) from None


def _packet(family: int, sequence: int, payload: bytes) -> bytes:
    """Return an echo request; the system fills in identifier and checksum of a datagram socket."""
    return _HEADER.pack(REQUEST[family], 0, 0, 0, sequence) + payload


def _is_reply(packet: bytes, family: int, payload: bytes) -> bool:
    """Say whether a packet answers ours. Some systems put the IPv4 header before it."""
    if family == 4 and packet and packet[0] >> 4 == 4 and len(packet) > 20:
        packet = packet[(packet[0] & 0xF) * 4 :]
    return len(packet) >= _HEADER.size and packet[0] == REPLY[family] and packet[_HEADER.size :] == payload
