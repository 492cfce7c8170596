"""A new connection: resolve, check, connect to what was checked, shake hands; each with its time."""

import asyncio
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Final

from fleet.agent.probes.addresses import Rules, literal
from fleet.agent.probes.deadline import DeadlineError, within
from fleet.agent.probes.link import Link, LostError
from fleet.agent.probes.resolver import Resolver
from fleet.agent.probes.result import ProbeError, Trace
from fleet.agent.probes.target import Target
from fleet.agent.probes.tls import Contexts, Protocol, Session

# Of the time left, as much goes to an address behind which there are more: a dead IPv6 way leaves half for IPv4.
SHARE_OF_ONE_ADDRESS: Final = 0.5
# A name that takes longer than this to get a thread is our own fault.
WAITED_SECONDS: Final = 0.005


@dataclass(slots=True)
class Way:
    """What probes connect with: shared by all of a process."""

    rules: Rules
    resolver: Resolver
    contexts: Contexts


async def connect(way: Way, target: Target, trace: Trace, *, protocol: Protocol | None, ahead: bytes = b"") -> Link:
    """Return a new connection to the target; the clock of the trace starts here.

    protocol: TLS that offers it ("" offers none); None: without TLS. ahead: the first request, sent at once.

    Raises ProbeError: dns, connect, tls, or skipped for an address that is not allowed.
    """
    session = None if protocol is None else _session(way, target, protocol)
    addresses = await allowed_addresses(way, target, trace)
    sock = await _connect_one(addresses, target, trace)
    link = Link(session, ahead)
    link.say_first(sock)
    if session is None:
        await asyncio.get_running_loop().create_connection(lambda: link, sock=sock)
        return link
    trace.phase, began = "tls", time.monotonic()
    try:
        await asyncio.get_running_loop().create_connection(lambda: link, sock=sock)
        trace.tls = await link.secured() - began
    except BaseException as error:
        link.abort()
        if isinstance(error, LostError):
            raise ProbeError("tls", "handshake_broken", str(error)) from None
        if isinstance(error, ssl.SSLError | ssl.CertificateError):
            raise ProbeError("tls", *_said(error)) from None
        raise
    trace.session = session
    return link


def _session(way: Way, target: Target, protocol: Protocol) -> Session:
    try:
        return Session(way.contexts.get(protocol, is_verified=target.is_verified), target.name)
    except (ValueError, ssl.SSLError) as error:
        raise ProbeError("skipped", "not_a_name", f"{target.name} cannot be asked for by TLS: {error}") from None


async def allowed_addresses(way: Way, target: Target, trace: Trace) -> list[str]:
    """Return the addresses of the target's host that may be connected to. Raises ProbeError."""
    written = literal(target.host)
    if written is None:
        trace.start()
        trace.phase = "dns"
        began = time.monotonic()
        found = await way.resolver.find(target.host, target.family)
        trace.dns = found.ended - began
        trace.resolver_waited = max(trace.resolver_waited, found.waited)
        addresses = found.addresses
    else:
        addresses = [written]
    port = 0 if target.kind == "icmp" else target.default_port
    allowed = [address for address in addresses if way.rules.allow(address, port)]
    if not allowed:
        shown = ", ".join(addresses)
        raise ProbeError("skipped", "address_refused", f"{target.host} has the address {shown}: not allowed from here")
    return allowed


async def _connect_one(addresses: list[str], target: Target, trace: Trace) -> socket.socket:
    """Return a socket that is connected to the first address that answers; the trace gets the time of that attempt."""
    trace.start()
    trace.phase = "tcp"
    until = trace.started + target.effective_timeout_seconds
    failure = ProbeError("connect", "unreachable")
    for number, address in enumerate(addresses, 1):
        trace.address, trace.family, trace.tried = address, 6 if ":" in address else 4, number
        began = time.monotonic()
        try:
            if number == len(addresses):
                sock = await _connected(address, target.default_port)
            else:
                sock = await within((until - began) * SHARE_OF_ONE_ADDRESS, _connected(address, target.default_port))
        except DeadlineError:
            failure = ProbeError("connect", "no_answer", f"{address} did not answer in its share of the time")
        except OSError as error:
            reason = "refused" if isinstance(error, ConnectionRefusedError) else "unreachable"
            failure = ProbeError("connect", reason, f"{address}: {error.strerror or error}")
        else:
            trace.tcp = time.monotonic() - began
            return sock
    raise failure


async def _connected(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003  # the socket module takes it no other way
        await asyncio.get_running_loop().sock_connect(sock, (address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def _said(error: ssl.SSLError | ssl.CertificateError) -> tuple[str, str]:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate", str(error.verify_message or error)
    return "handshake", str(error.reason or error)
