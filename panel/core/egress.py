"""The one way out: HTTP clients that check where they connect, never follow redirects, and bound time and size.

Addresses of metadata services and of the link are refused always, private ones unless FLEETDECK_EGRESS_ALLOW names their
network. What was checked is what is connected to, so that a name that resolves differently the second time gains nothing.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import httpcore
import httpx
from django.conf import settings

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 20.0
WHOLE_SECONDS: Final = 60.0  # for a whole body: one that drips would hold a worker for as long as it likes
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
MAX_CONNECTIONS: Final = 64
SHORTEST_SECRET: Final = 8

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Where clouds answer with a machine's own credentials; some lie in ranges that are otherwise public or private.
METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)


# An IPv4 address within an IPv6 one, by the bits that lie to its right: 6to4, and NAT64's own prefix, behind which the
# network translates (RFC 3056, RFC 6052).
_WITHIN: Final = ((ipaddress.IPv6Network("2002::/16"), 80), (ipaddress.IPv6Network("64:ff9b::/96"), 0))


class AddressRefused(httpcore.ConnectError):
    """The host's address is one that the panel does not connect to."""


class AnswerTooLarge(httpx.HTTPError):
    """The answer is longer than the limit in force."""


@lru_cache(maxsize=8)
def _networks(texts: tuple[str, ...]) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


def is_allowed(address: Address) -> bool:
    """Say whether the panel may connect to this address."""
    if isinstance(address, ipaddress.IPv6Address):
        within = address.ipv4_mapped or next(
            (
                ipaddress.IPv4Address(int(address) >> right & 0xFFFFFFFF)
                for network, right in _WITHIN
                if address in network
            ),
            None,
        )
        if within is not None:
            return is_allowed(within)
    if address in METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    if any(address in network for network in _networks(tuple(settings.EGRESS_ALLOW))):
        return True
    return address.is_global


def resolve(host: str, port: int) -> Iterator[str]:
    """Yield the allowed addresses of a host. Raises AddressRefused when it has none that is allowed."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore.ConnectError(f"{host} cannot be resolved: {error.strerror or error}") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    allowed = [text for text in addresses if is_allowed(ipaddress.ip_address(text.partition("%")[0]))]
    if not allowed:
        raise AddressRefused(f"{host} has the address {', '.join(addresses)}, to which this panel does not connect")
    yield from allowed


class GuardedBackend(httpcore.SyncBackend):
    """Connects to the checked addresses of a host, one after the other."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Open a connection. Raises AddressRefused, or httpcore.ConnectError when no address answers."""
        failure: Exception | None = None
        for address in resolve(host, port):
            try:
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # noqa: S101 (resolve yields one at least)
        raise failure

    def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore.NetworkStream:
        """Refuse: nothing outside is reached so."""
        raise AddressRefused(f"{path} is no address of the network")


class GuardedTransport(httpx.HTTPTransport):
    """httpx's transport over the guarded backend, with one TLS context and no proxy."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False)
        # httpx has no way to hand over a network back end; its pool is httpcore's and is replaced before first use.
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS // 2,
            keepalive_expiry=30.0,
            network_backend=GuardedBackend(),
        )


@lru_cache(maxsize=1)
def shared_transport() -> GuardedTransport:
    """Return the transport of this process: one pool and one TLS context (making them costs 24 ms of CPU)."""
    return GuardedTransport(httpx.create_ssl_context(trust_env=False))


def client(*, transport: httpx.BaseTransport | None = None, **options: Any) -> httpx.Client:
    """Return an HTTP client for outside services; do not close it when it uses the shared transport.

    transport: another way out, for tests. options: httpx.Client's (base_url, headers, auth).
    """
    return httpx.Client(
        transport=transport or shared_transport(),
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=False,
        **options,
    )


def read_whole(response: httpx.Response, *, limit: int = MAX_ANSWER_BYTES) -> httpx.Response:
    """Return the same answer with its body read and decoded, up to `limit` bytes. Raises AnswerTooLarge, or httpx.ReadTimeout."""
    until = time.monotonic() + WHOLE_SECONDS
    try:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if time.monotonic() > until:
                raise httpx.ReadTimeout(f"the answer took more than {WHOLE_SECONDS:.0f} s")
            if len(body) > limit:
                raise AnswerTooLarge(f"the answer is longer than {limit} bytes")
    finally:
        response.close()
    left_out = {"content-encoding", "content-length", "transfer-encoding"}
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in left_out]
    return httpx.Response(response.status_code, headers=headers, content=bytes(body))


def send_bounded(client: httpx.Client, request: httpx.Request, *, limit: int = MAX_ANSWER_BYTES) -> httpx.Response:
    """Send a request and read its answer up to `limit` bytes. Raises httpx.HTTPError, AnswerTooLarge among them."""
    return read_whole(client.send(request, stream=True), limit=limit)


class Forgetful(httpx.BaseTransport):
    """A way out whose answers never hold what was sent as a secret, so that no error, log or page can show it.

    secrets: what is taken out of every answer, wherever it stands; short ones would hide too much and are left.
    """

    def __init__(self, inner: httpx.BaseTransport | None, secrets: Iterable[str]) -> None:
        self._inner = inner
        self._secrets = [secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its whole answer without the secrets."""
        inner = self._inner or shared_transport()
        response = read_whole(inner.handle_request(request))
        body = response.content
        for secret in self._secrets:
            body = body.replace(secret, b"[redacted]")
        return httpx.Response(response.status_code, headers=response.headers, content=body)
