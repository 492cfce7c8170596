"""One HTTP/1.1 exchange over a channel, stamped piece by piece; h11 reads what comes."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import h11

from fleet.agent.probes.channel import Channel
from fleet.agent.probes.link import LostError
from fleet.agent.probes.result import ProbeError, Trace, plain
from fleet.agent.probes.target import Target

AGENT: Final = "fleetdeck-probe"
# Marks a request as a probe, so that whoever counts load can take it out again.
PROBE_HEADER: Final = "X-Fleetdeck-Probe"
MARK_HEADER: Final = "X-Fleetdeck-Probe-Mark"
MOST_INFORMATIONAL: Final = 16
# After so many pieces of a body the event loop gets a turn: a flood of tiny chunks is no way to stop the clock.
TURN: Final = 64

OnBody = Callable[[float, bytes], None]


@dataclass(slots=True)
class Request:
    """What is sent. headers: beside those that every probe has."""

    method: str
    path: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


@dataclass(slots=True)
class Answer:
    """Status and headers (names in lower case, the last of each)."""

    status: int
    headers: dict[str, str]


def request_of(target: Target, vantage: str, *, method: str = "", path: str = "", body: bytes = b"") -> Request:
    """Return a request to the target, marked as a probe."""
    port = target.default_port
    name = f"[{target.name}]" if ":" in target.name else target.name
    is_usual = port == (443 if target.is_tls else 80)
    headers = [
        ("Host", name if is_usual else f"{name}:{port}"),
        ("User-Agent", AGENT),
        (PROBE_HEADER, vantage),
        ("Accept-Encoding", "identity"),
    ]
    if target.mark:
        headers.append((MARK_HEADER, target.mark))
    if target.bearer:
        headers.append(("Authorization", f"Bearer {target.bearer}"))
    own = {key.lower() for key in target.headers}
    if body:
        headers.append(("Content-Length", str(len(body))))
        if "content-type" not in own:
            headers.append(("Content-Type", "application/json"))
    headers = [pair for pair in headers if pair[0].lower() not in own or pair[0] == PROBE_HEADER]
    headers += [(key, value) for key, value in target.headers.items() if key.lower() != PROBE_HEADER.lower()]
    return Request(method or target.method, path or target.path, headers, body)


async def exchange(channel: Channel, request: bytes, trace: Trace, on_body: OnBody, *, limit: int) -> Answer:
    """Send a request (see `encode`) and read its whole answer; the trace gets the moments.

    on_body: called with each piece of the body and the moment it came. limit: bytes of the body. Raises ProbeError: http
    (no or a broken answer), aborted (broken off within the body), body (longer than the limit); LostError when a connection that
    was open already turns out to be closed before anything came.
    """
    connection = channel.web
    channel.is_reusable = False
    trace.phase, trace.send_began = "send", time.monotonic()
    if channel.link.ahead:
        trace.send_began, trace.sent = await channel.link.sent_ahead()
    else:
        trace.sent = await channel.link.write(request)
    trace.phase = "wait"
    answer = await _read_head(channel, trace)
    declared = answer.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit and not request.startswith(b"HEAD "):
        raise ProbeError("body", "too_large", f"the body has {declared[:20]} bytes, the limit is {limit}")
    trace.phase = "transfer"
    await _read_body(channel, trace, on_body, limit)
    trace.phase = "done"
    channel.is_reusable = connection.our_state is h11.DONE and connection.their_state is h11.DONE
    return answer


def encode(connection: h11.Connection, request: Request) -> bytes:
    """Return a request as it goes over the wire. Raises ProbeError for what cannot be sent."""
    if connection.our_state is h11.DONE:
        connection.start_next_cycle()
    try:
        head = connection.send(h11.Request(method=request.method, target=request.path, headers=request.headers))
        body = connection.send(h11.Data(data=request.body)) if request.body else b""
        end = connection.send(h11.EndOfMessage())
    except h11.LocalProtocolError as error:
        raise ProbeError("skipped", "not_sendable", plain(str(error))) from None
    return b"".join(part for part in (head, body, end) if part)


async def _read_head(channel: Channel, trace: Trace) -> Answer:
    stamp = time.monotonic()
    received, informational = 0, 0
    while True:
        try:
            event = channel.web.next_event()
        except h11.RemoteProtocolError as error:
            raise ProbeError("http", *_broken(error, received)) from None
        if event is h11.NEED_DATA:
            stamp, data = await _read(channel, received)
            received += len(data)
            channel.web.receive_data(data)
        elif isinstance(event, h11.Response):
            trace.headers, trace.status = stamp, event.status_code
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
            return Answer(event.status_code, headers)
        elif isinstance(event, h11.InformationalResponse):
            informational += 1
            if informational > MOST_INFORMATIONAL:
                raise ProbeError(
                    "http", "protocol", f"more than {MOST_INFORMATIONAL} answers 1xx and none that ends it"
                )
        else:
            raise ProbeError("http", "closed", "the connection was closed without an answer")


async def _read(channel: Channel, received: int) -> tuple[float, bytes]:
    try:
        return await channel.link.read()
    except LostError as error:
        if received:
            raise ProbeError("http", "closed", f"broken off within the headers: {error}") from None
        raise


def _broken(error: h11.RemoteProtocolError, received: int) -> tuple[str, str]:
    if not received:
        return "closed", "the connection was closed without an answer"
    if error.error_status_hint == 431:
        return "headers_too_large", "the headers are longer than 64 KiB"
    return "protocol", plain(str(error))


async def _read_body(channel: Channel, trace: Trace, on_body: OnBody, limit: int) -> None:
    stamp, turns = trace.headers or time.monotonic(), 0
    while True:
        try:
            event = channel.web.next_event()
            if event is h11.NEED_DATA:
                stamp, data = await channel.link.read()
                channel.web.receive_data(data)
                continue
        except h11.RemoteProtocolError as error:
            raise ProbeError("aborted", "cut", plain(str(error))) from None
        except LostError as error:
            raise ProbeError("aborted", "cut", f"broken off within the body: {error}") from None
        if not isinstance(event, h11.Data):
            trace.ended = stamp
            return
        trace.bytes += len(event.data)
        if trace.bytes > limit:
            raise ProbeError("body", "too_large", f"the body is longer than {limit} bytes")
        on_body(stamp, bytes(event.data))
        turns += 1
        if turns % TURN == 0:
            await asyncio.sleep(0)
