"""What a probe asks of whom: one flat struct for all kinds, checked before the first packet."""

import re
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

Kind = Literal["http", "tcp", "tls", "dns", "chat", "completion", "kserve_ready", "kserve_infer", "grpc_health", "icmp"]
Connection = Literal["cold", "warm"]

LONGEST_TIMEOUT_SECONDS: Final = 600.0
SHORTEST_INTERVAL_SECONDS: Final = 1.0
LARGEST_BODY_BYTES: Final = 64 * 1024 * 1024
MOST_HOPS: Final = 5
MOST_HEADERS: Final = 32
STREAMS: Final = frozenset({"chat", "completion"})
WITHOUT_PORT: Final = frozenset({"dns", "icmp"})
# A name or an address; brackets around IPv6 are allowed.
_HOST: Final = re.compile(r"\[?[0-9A-Za-z_.:%-]{1,255}\]?")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_UNSENDABLE: Final = re.compile(r"[\x00-\x20\x7f-\U0010ffff]")
_LINES: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

Text = Annotated[str, Meta(max_length=1_000)]
Name = Annotated[str, Meta(max_length=255)]


class TargetError(ValueError):
    """The target cannot be probed as it is written; the sentence says what to change."""


class Target(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """One thing to probe.

    id: whose results these are. host: name or address; of `dns` the name that is asked for. is_tls: for HTTP kinds and gRPC.
    timeout_seconds: of one probe, all phases together; shown as the effective one with each result. connections: `cold` (a
    new connection each time), `warm` (one that is open already), or both after each other, kept apart in the results.
    family: 4 or 6 alone, None for what the system prefers. server_name: for TLS and the Host header, where it is not `host`.
    statuses: that count as good, empty for 2xx. must_contain, must_not_contain: plain text of the body. follow: redirects to
    go along, each checked again and recorded; 0 by default: an API that redirects is set up wrongly.
    body: JSON, or text when it is a string; `{nonce}` in it becomes a unique text. prompt: after a unique beginning, so that
    no prefix cache answers. extra: more fields of the body of streams. warm_path: fetched by GET, unmeasured, to open the
    connection of a warm probe. server: of `dns`, an address with an optional port; empty for the system's own resolver.
    expected: of `dns`, addresses of which one has to be in the answer. service: of gRPC health.
    is_control: tells how this place itself is; slow_ms: over this the control counts as bad.
    mark: shown to gateways of ours, which count such requests apart from load.
    run: another number than before asks for one probe at once, beside the interval.
    """

    id: int
    kind: Kind
    host: Name
    port: int | None = None
    is_tls: bool = False
    path: Text = "/"
    method: Literal["GET", "HEAD", "POST", "PUT", "OPTIONS"] = "GET"
    headers: dict[str, Text] = {}
    bearer: Text = ""
    body: dict[str, Any] | list[Any] | str | None = None
    interval_seconds: float = 30.0
    timeout_seconds: float = 10.0
    connections: tuple[Connection, ...] = ("cold",)
    family: Literal[4, 6] | None = None
    server_name: Name = ""
    is_verified: bool = True
    statuses: list[int] = []
    must_contain: Text = ""
    must_not_contain: Text = ""
    follow: int = 0
    max_body_bytes: int = 16 * 1024 * 1024
    model: Name = ""
    prompt: Annotated[str, Meta(max_length=1_000_000)] = "Count from one to twenty."
    max_tokens: int = 32
    extra: dict[str, Any] = {}
    warm_path: Text = ""
    query: Literal["A", "AAAA"] = "A"
    server: Name = ""
    expected: list[Name] = []
    service: Name = ""
    is_control: bool = False
    slow_ms: float | None = None
    run: int = 0
    mark: Annotated[str, Meta(max_length=64)] = ""

    @property
    def default_port(self) -> int:
        """The port, or what the kind has."""
        return self.port or (443 if self.is_tls or self.kind == "tls" else 80)

    @property
    def name(self) -> str:
        """The name for TLS and the Host header."""
        return self.server_name or self.host.strip("[]")

    @property
    def effective_timeout_seconds(self) -> float:
        """How long one probe may take, as it is applied."""
        return min(self.timeout_seconds, LONGEST_TIMEOUT_SECONDS)


def check(target: Target) -> Target:
    """Return the target. Raises TargetError with what to change."""
    if not _HOST.fullmatch(target.host):
        raise TargetError(f"{target.host[:80]!r} is no host: write a name or an address, without scheme and path")
    if target.port is not None and not 0 < target.port < 65_536:
        raise TargetError(f"{target.port} is no port: it lies between 1 and 65535")
    if target.kind in {"tcp", "tls"} and target.port is None:
        raise TargetError(f"a {target.kind} probe needs a port")
    if not target.path.startswith("/") or _UNSENDABLE.search(target.path):
        raise TargetError(f"{target.path[:80]!r} is no path: it begins with / and has other characters percent-encoded")
    if not target.timeout_seconds > 0:
        raise TargetError("the timeout has to be longer than 0 s")
    if not target.interval_seconds >= SHORTEST_INTERVAL_SECONDS:
        raise TargetError(f"the interval has to be {SHORTEST_INTERVAL_SECONDS:g} s at least")
    if not 0 <= target.follow <= MOST_HOPS:
        raise TargetError(f"a probe follows 0 to {MOST_HOPS} redirects")
    if not 0 < target.max_body_bytes <= LARGEST_BODY_BYTES:
        raise TargetError(f"a body is limited to between 1 and {LARGEST_BODY_BYTES} bytes")
    if not target.connections or len(set(target.connections)) != len(target.connections):
        raise TargetError("say cold, warm, or both")
    _check_headers(target)
    return target


def _check_headers(target: Target) -> None:
    if len(target.headers) > MOST_HEADERS:
        raise TargetError(f"a probe sends {MOST_HEADERS} headers of your own at most")
    for name, value in (*target.headers.items(), ("authorization", target.bearer)):
        if not _HEADER_NAME.fullmatch(name) or _LINES.search(value) or not value.isascii():
            raise TargetError(f"the header {name[:64]!r} cannot be sent: name and value are one line of ASCII")
