"""HTTP: one request whose status and body are judged; a redirect is named, and followed only where that was asked for."""

from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec.structs import replace

from fleet.agent.probes.job import Job
from fleet.agent.probes.result import Hop, ProbeError, plain, seconds_ms, span_ms
from fleet.agent.probes.target import Target, TargetError, check
from fleet.agent.probes.tokens import error_text
from fleet.agent.probes.web import Answer, request_of

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
KEPT_BYTES: Final = 4 * 1024


class Body:
    """Keeps the beginning of a body, or all of it where it has to be searched."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self.kept = bytearray()

    def add(self, _stamp: float, data: bytes) -> None:
        """Keep a piece as far as there is room."""
        self.kept += data[: self._most - len(self.kept)]

    @property
    def text(self) -> str:
        """What was kept, as text."""
        return self.kept.decode("utf-8", "replace")


async def probe(job: Job) -> None:
    """Ask once, or once for each redirect that may be followed. Raises ProbeError: http, body."""
    first = job.target
    try:
        await _along(job)
    finally:
        job.target = first


async def _along(job: Job) -> None:
    left = job.target.follow
    while True:
        target = job.target
        is_searched = bool(target.must_contain or target.must_not_contain)
        body = Body(target.max_body_bytes if is_searched else KEPT_BYTES)
        answer = await job.ask(request_of(target, job.vantage, body=job.encoded(target.body)), body.add)
        if answer.status not in REDIRECTS or answer.status in target.statuses:
            judge(target, answer, body.text)
            return
        onward = _place(target, answer)
        shown = onward._replace(query="", fragment="").geturl()
        if not left:
            raise ProbeError("http", "redirect", plain(f"{answer.status} to {shown}"))
        left -= 1
        job.trace.hops.append(_hop(job, answer.status, shown))
        job.target = _onward(target, onward, answer.status)
        job.begin_again(is_from_start=False)


def judge(target: Target, answer: Answer, body: str) -> None:
    """Compare status and body with what the target wants. Raises ProbeError."""
    is_good = answer.status in target.statuses if target.statuses else 200 <= answer.status < 300
    if not is_good:
        raise ProbeError("http", "status", plain(f"status {answer.status}: {said_in(body)}"))
    if target.must_contain and target.must_contain not in body:
        raise ProbeError("body", "text_missing", plain(f"the body does not hold {target.must_contain!r}"))
    if target.must_not_contain and target.must_not_contain in body:
        raise ProbeError("body", "text_found", plain(f"the body holds {target.must_not_contain!r}"))


def said_in(body: str) -> str:
    """Return what an answer says of its error: of JSON its message, else its beginning."""
    import json

    try:
        return error_text(json.loads(body))
    except (ValueError, RecursionError):
        return plain(body[:200])


def _place(target: Target, answer: Answer) -> SplitResult:
    """Return where a redirect leads. Raises ProbeError."""
    scheme = "https" if target.is_tls else "http"
    name = f"[{target.name}]" if ":" in target.name else target.name
    location = answer.headers.get("location", "")
    try:
        onward = urlsplit(urljoin(f"{scheme}://{name}:{target.default_port}{target.path}", location))
        _ = onward.port
    except ValueError:
        onward = SplitResult("", "", "", "", "")
    if not location or onward.scheme not in {"http", "https"} or not onward.hostname or "@" in onward.netloc:
        raise ProbeError(
            "http", "redirect", plain(f"{answer.status} to a place that cannot be read: {location[:100]!r}")
        )
    return onward


def _onward(target: Target, onward: SplitResult, status: int) -> Target:
    """Return the target behind a redirect; what is secret goes along only to the same place. Raises ProbeError."""
    is_tls = onward.scheme == "https"
    host, port = onward.hostname or "", onward.port or (443 if is_tls else 80)
    is_same = (host, port, is_tls) == (target.name.lower(), target.default_port, target.is_tls)
    path = (onward.path or "/") + (f"?{onward.query}" if onward.query else "")
    changes: dict[str, object] = {"path": path}
    if not is_same:
        changes |= {
            "host": host,
            "port": port,
            "is_tls": is_tls,
            "server_name": "",
            "bearer": "",
            "mark": "",
            "headers": {},
        }
    if status in {301, 302, 303} and target.method == "POST":
        changes |= {"method": "GET", "body": None}
    try:
        return check(replace(target, **changes))
    except TargetError as error:
        raise ProbeError("http", "redirect", plain(f"{status} to a place that cannot be asked: {error}")) from None


def _hop(job: Job, status: int, location: str) -> Hop:
    trace, target = job.trace, job.target
    scheme = "https" if target.is_tls else "http"
    return Hop(
        url=plain(f"{scheme}://{target.name}:{target.default_port}{target.path.partition('?')[0]}"),
        status=status,
        location=plain(location),
        address=trace.address,
        dns_ms=seconds_ms(trace.dns),
        tcp_ms=seconds_ms(trace.tcp),
        tls_ms=seconds_ms(trace.tls),
        ttfb_ms=span_ms(trace.send_began, trace.headers),
    )
