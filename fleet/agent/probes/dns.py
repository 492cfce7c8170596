"""DNS: one question to one server, or to the system's own resolver."""

import asyncio
import secrets
import time
from typing import Final

from fleet.agent.probes import dns_message
from fleet.agent.probes.addresses import literal
from fleet.agent.probes.job import Job
from fleet.agent.probes.result import ProbeError, plain

PORT: Final = 53
MOST_DATAGRAMS: Final = 8


async def probe(job: Job) -> None:
    """Ask for the target's host. Raises ProbeError: dns, empty, body, aborted, skipped."""
    job.trace.phase = "dns"
    if job.target.server:
        addresses = await _from_server(job)
        job.trace.ended = time.monotonic() if job.trace.headers is None else job.trace.headers
    else:
        found = await job.way.resolver.find(job.target.host, 4 if job.target.query == "A" else 6)
        addresses, job.trace.ended, job.trace.resolver_waited = found.addresses, found.ended, found.waited
    job.trace.dns = job.trace.ended - job.trace.started
    job.trace.phase = "done"
    _judge(job, addresses)


def _judge(job: Job, addresses: list[str]) -> None:
    target = job.target
    if not addresses:
        raise ProbeError("empty", "no_addresses", f"{target.host} has no {target.query} record")
    wanted = {literal(address) or address for address in target.expected}
    if wanted and not wanted & set(addresses):
        raise ProbeError("body", "other_addresses", plain(f"{target.host} is {', '.join(addresses)}"))


async def _from_server(job: Job) -> list[str]:
    address, port = _server(job.target.server)
    if not job.way.rules.allow(address, port):
        raise ProbeError("skipped", "address_refused", f"{address} is not allowed from here")
    job.trace.address, job.trace.family = address, 6 if ":" in address else 4
    try:
        question = dns_message.encode(job.target.host, job.target.query, secrets.randbelow(65_536))
        answer = await _by_datagram(job, question, address, port)
        if answer.is_cut:
            answer = await _by_stream(job, question, address, port)
    except OSError as error:
        raise ProbeError("connect", "unreachable", f"{address}: {error.strerror or error}") from None
    except ValueError as error:
        raise ProbeError("dns", "unreadable", plain(str(error))) from None
    if answer.rcode:
        reason = dns_message.RCODES.get(answer.rcode, "server_failure")
        raise ProbeError("dns", reason, f"{address} answers with code {answer.rcode}")
    return answer.addresses


def _server(text: str) -> tuple[str, int]:
    """Return address and port of `address`, `address:port` or `[address]:port`. Raises ProbeError."""
    whole = literal(text)
    if whole:
        return whole, PORT
    host, _, port = text.rpartition(":")
    address = literal(host)
    if address is None or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ProbeError("skipped", "not_an_address", plain(f"{text!r} is no address of a name server"))
    return address, int(port)


class _Mailbox(asyncio.DatagramProtocol):
    """Keeps the datagrams that came, each with its moment."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[tuple[float, bytes] | Exception] = asyncio.Queue(MOST_DATAGRAMS)

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002  # connected: it is the server's
        if not self.came.full():
            self.came.put_nowait((time.monotonic(), data))

    def error_received(self, exc: Exception) -> None:
        if not self.came.full():
            self.came.put_nowait(exc)


async def _by_datagram(job: Job, question: bytes, address: str, port: int) -> dns_message.DnsAnswer:
    loop = asyncio.get_running_loop()
    transport, mailbox = await loop.create_datagram_endpoint(_Mailbox, remote_addr=(address, port))
    try:
        job.trace.phase, job.trace.send_began = "wait", time.monotonic()
        transport.sendto(question)
        job.trace.sent = time.monotonic()
        while True:
            came = await mailbox.came.get()
            if isinstance(came, Exception):
                raise came
            stamp, data = came
            job.trace.bytes += len(data)
            answer = dns_message.decode(data, question)
            if answer is not None:
                job.trace.headers = stamp
                return answer
    finally:
        transport.abort()


async def _by_stream(job: Job, question: bytes, address: str, port: int) -> dns_message.DnsAnswer:
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(len(question).to_bytes(2, "big") + question)
        data = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    except asyncio.IncompleteReadError:
        raise ProbeError("aborted", "cut", "the server closed the connection within its answer") from None
    finally:
        writer.transport.abort()
    job.trace.headers = time.monotonic()
    job.trace.bytes += len(data)
    answer = dns_message.decode(data, question)
    if answer is None:
        raise ProbeError("dns", "unreadable", "the answer belongs to another question")
    return answer
