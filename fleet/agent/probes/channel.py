"""A connection with the state of its protocol: what a cold probe opens and a warm one uses again."""

from dataclasses import dataclass

import h11
from h2.config import H2Configuration
from h2.connection import H2Connection

from fleet.agent.probes.dial import Way, connect
from fleet.agent.probes.link import Link
from fleet.agent.probes.result import Trace
from fleet.agent.probes.target import Target

LONGEST_HEADERS_BYTES = 64 * 1024


@dataclass(slots=True)
class Channel:
    """One open connection. is_reusable: whether the last exchange left it fit for another one."""

    link: Link
    address: str
    family: int | None
    web: h11.Connection
    h2: H2Connection | None = None
    is_reusable: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a request may be sent on it."""
        return self.is_reusable and self.link.is_usable


def fresh_web() -> h11.Connection:
    """Return the state of an HTTP/1.1 connection that is about to be opened."""
    return h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEADERS_BYTES)


async def open_channel(way: Way, target: Target, trace: Trace, web: h11.Connection, ahead: bytes = b"") -> Channel:
    """Return a new connection for HTTP, or for gRPC where the target is one. Raises ProbeError.

    web: state of the connection; ahead: its first request, sent as soon as it can be.
    """
    is_grpc = target.kind == "grpc_health"
    protocol = ("h2" if is_grpc else "http/1.1") if target.is_tls else None
    link = await connect(way, target, trace, protocol=protocol, ahead=ahead)  # type: ignore[arg-type]  # mypy widens the literals
    channel = Channel(link, trace.address, trace.family, web)
    if is_grpc:
        channel.h2 = H2Connection(config=H2Configuration(client_side=True, header_encoding="utf-8"))
        channel.h2.initiate_connection()
    return channel
