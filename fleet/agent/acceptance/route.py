"""The way to an address: round trip and hops by plain TCP connections, which need no privileges."""

import socket
import statistics
import time
from typing import Final

from fleet.agent.addresses import is_forbidden, parsed

CONNECTS: Final = 5
CONNECT_SECONDS: Final = 3.0
MOST_HOPS: Final = 32
TRIES: Final = 2
SHORTEST_HOP_SECONDS: Final = 0.5
_IP_RECVERR: Final = 11
_IPV6_RECVERR: Final = 25


class RouteError(Exception):
    """There is no way. reason: a short code for the report."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def resolve(host: str, port: int, *, allow_private: bool) -> str:
    """Return the IP address to connect to. Raises RouteError: not_found, or not_allowed for what nobody may be sent to."""
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise RouteError("not_found") from None
    for answer in answers:
        text = str(answer[4][0]).partition("%")[0]
        if is_allowed(text, allow_private=allow_private):
            return text
    raise RouteError("not_allowed")


def is_allowed(text: str, *, allow_private: bool) -> bool:
    """Say whether a check may connect to an IP address: never to link-local ones and a cloud's own services."""
    address = parsed(text)
    if address is None or is_forbidden(address):
        return False
    return allow_private or address.is_global


def round_trip_ms(address: str, port: int) -> float:
    """Return the median time in which a connection is made. Raises RouteError."""
    times = []
    for _ in range(CONNECTS):
        began = time.perf_counter()
        if not _connects(address, port, CONNECT_SECONDS):
            raise RouteError("unreachable")
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def hops(address: str, port: int, *, usual_ms: float) -> int:
    """Return with how few hops an address can be reached. Raises RouteError.

    A connection whose packets may pass n routers succeeds from the true number on, so it is found by halving. usual_ms: the
    round trip, from which follows how long a connection that fails is waited for.
    """
    patience = max(SHORTEST_HOP_SECONDS, 4 * usual_ms / 1000)
    low, high = 1, MOST_HOPS
    if not _connects(address, port, patience, hops=high):
        raise RouteError("too_far")
    while low < high:
        middle = (low + high) // 2
        if _connects(address, port, patience, hops=middle):
            high = middle
        else:
            low = middle + 1
    return low


def _connects(address: str, port: int, seconds: float, *, hops: int | None = None) -> bool:
    """Say whether a TCP connection is made in time, with packets that may pass so many hops; what is lost is sent again."""
    for _ in range(TRIES):
        try:
            return _connect(address, port, seconds, hops)
        except TimeoutError:
            continue
    return False


def _connect(address: str, port: int, seconds: float, hops: int | None) -> bool:
    """Make one connection; returns whether it was made. Raises TimeoutError when nothing came back."""
    is_v6 = ":" in address
    with socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        try:
            if hops is not None and is_v6:
                connection.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)
                connection.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
            elif hops is not None:
                connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
                connection.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
            connection.connect((address, port))
        except TimeoutError:
            raise
        except OSError:  # a router said that the packet may go no further, or the end that nobody listens
            return False
    return True
