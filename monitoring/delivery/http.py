"""One POST to a chat or a webhook, within 15 seconds in all, and what was said."""

import ssl
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import httpcore
import httpx

from monitoring.delivery.secrecy import shown_url
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.verdict import Answer, Request, Verdict
from panel.core.egress import AddressRefused, GuardedBackend, GuardedTransport

WHOLE_SECONDS: Final = 15.0
LARGEST_ANSWER: Final = 64 * 1024
SHOWN_ANSWER: Final = 4_000
_HIDDEN_HEADERS: Final = frozenset({"webhook-signature", "set-cookie", "authorization"})


class _Bounded(httpcore.NetworkStream):
    """A connection of which no read, write or handshake lasts beyond one moment, however the other side drips."""

    def __init__(self, stream: httpcore.NetworkStream, until: float) -> None:
        self._stream = stream
        self._until = until

    def _left(self, error: type[Exception]) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise error(f"not within {WHOLE_SECONDS:.0f} s")
        return left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 (httpcore's)
        """Read what has come."""
        return self._stream.read(max_bytes, self._left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 (httpcore's)
        """Write all of it."""
        self._stream.write(buffer, self._left(httpcore.WriteTimeout))

    def close(self) -> None:
        """Close."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 (httpcore's)
    ) -> httpcore.NetworkStream:
        """Shake hands."""
        left = self._left(httpcore.ConnectTimeout)
        return _Bounded(self._stream.start_tls(ssl_context, server_hostname, left), self._until)

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore asks for."""
        return self._stream.get_extra_info(info)


class _BoundedBackend(GuardedBackend):
    def __init__(self, until: float) -> None:
        self._until = until

    def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore.NetworkStream:
        """Open a connection to a checked address."""
        return _Bounded(super().connect_tcp(*arguments, **options), self._until)


@lru_cache(maxsize=1)
def _context() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


class _BoundedTransport(GuardedTransport):
    def __init__(self, until: float) -> None:
        super().__init__(_context())
        self._pool = httpcore.ConnectionPool(ssl_context=_context(), network_backend=_BoundedBackend(until))


def _head(headers: Mapping[str, str]) -> str:
    return "\n".join(
        f"{name}: {'[redacted]' if name.lower() in _HIDDEN_HEADERS else value}" for name, value in headers.items()
    )


def post(request: Request) -> tuple[Answer | Verdict, str]:
    """Send it; returns the answer, or what its absence means, and the conversation. Redirects are not followed."""
    until = time.monotonic() + WHOLE_SECONDS
    said = [f"POST {shown_url(request.url)}", _head(request.headers), "", request.body.decode(errors="replace"), ""]
    found: Answer | Verdict
    try:
        timeout = httpx.Timeout(WHOLE_SECONDS, connect=5.0)
        with (
            httpx.Client(transport=_BoundedTransport(until), timeout=timeout, trust_env=False) as client,
            client.stream("POST", request.url, content=request.body, headers=dict(request.headers)) as response,
        ):
            body = _read(response, until)
            found = Answer(response.status_code, body, dict(response.headers))
            shown = body[:SHOWN_ANSWER].decode(errors="replace")
            said += [f"HTTP {response.status_code}", _head(dict(response.headers)), "", shown]
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        found = _verdict(error)
        said.append(found.sentence)
    return found, "\n".join(said)


def _read(response: httpx.Response, until: float) -> bytes:
    """Read the answer as far as it is wanted. Raises httpx.ReadTimeout."""
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) >= LARGEST_ANSWER:
            break
        if time.monotonic() > until:
            raise httpx.ReadTimeout(f"not within {WHOLE_SECONDS:.0f} s")
    return bytes(body[:LARGEST_ANSWER])


def _verdict(error: Exception) -> Verdict:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressRefused):
            sentence = _("%(why)s. FLEETDECK_EGRESS_ALLOW names the private networks that it may reach.")
            return Verdict("refused", sentence % {"why": cause}, error_code="address_refused")
        if isinstance(cause, ssl.SSLError):
            sentence = _("No TLS connection: %(why)s") % {"why": cause.reason or cause}
            return Verdict("refused", sentence, error_code="tls")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Verdict(
            "retry", _("No connection: %(why)s") % {"why": error or type(error).__name__}, error_code="connect"
        )
    if isinstance(error, httpx.TimeoutException):
        sentence = _("No answer within %(seconds)s s.") % {"seconds": f"{WHOLE_SECONDS:.0f}"}
        return Verdict("retry", sentence, error_code="timeout", is_uncertain=True)
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | ValueError):
        return Verdict("refused", _("The address cannot be used."), error_code="address")
    sentence = _("The connection broke: %(why)s") % {"why": type(error).__name__}
    return Verdict("retry", sentence, error_code="broken", is_uncertain=True)
