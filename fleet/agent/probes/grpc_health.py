"""gRPC's health protocol (grpc.health.v1) over HTTP/2; h2 reads the frames, the two messages have one field each."""

import time
from typing import Any, Final

from h2 import events
from h2.connection import H2Connection
from h2.exceptions import H2Error

from fleet.agent.probes.channel import Channel
from fleet.agent.probes.job import Job
from fleet.agent.probes.link import LostError
from fleet.agent.probes.result import ProbeError, Trace, plain
from fleet.agent.probes.target import Target
from fleet.agent.probes.web import AGENT, MARK_HEADER, PROBE_HEADER

PATH: Final = "/grpc.health.v1.Health/Check"
LONGEST_MESSAGE: Final = 4096
SERVING: Final = 1
STATUSES: Final = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


async def probe(job: Job) -> None:
    """Ask for the health of the target's service, empty for the whole server. Raises ProbeError: http, body, aborted."""
    channel = await job.open()
    if channel.h2 is None:
        raise ProbeError("skipped", "wrong_connection", "the connection at hand is not HTTP/2")
    answer = _Answer(job.trace, job.target.max_body_bytes)
    try:
        await _ask(channel, channel.h2, job, answer)
    except LostError as error:
        outcome: Any = "http" if job.trace.headers is None else "aborted"
        raise ProbeError(outcome, "closed", f"broken off: {error}") from None
    except H2Error as error:
        raise ProbeError("http", "protocol", plain(f"no proper HTTP/2: {error}")) from None
    _judge(answer)
    job.trace.phase = "done"
    channel.is_reusable = answer.goes_away is None


async def _ask(channel: Channel, connection: H2Connection, job: Job, answer: "_Answer") -> None:
    trace = job.trace
    channel.is_reusable = False
    trace.phase, trace.send_began = "send", time.monotonic()
    stream = connection.get_next_available_stream_id()
    answer.stream = stream
    connection.send_headers(stream, _headers(job.target, job.vantage))
    connection.send_data(stream, _framed(_service(job.target.service)), end_stream=True)
    trace.sent = await channel.link.write(connection.data_to_send())
    trace.phase = "wait"
    while not answer.is_over:
        stamp, data = await channel.link.read()
        if not data:
            outcome: Any = "http" if trace.headers is None else "aborted"
            raise ProbeError(outcome, "closed", "the connection was closed before the answer was complete")
        for event in connection.receive_data(data):
            answer.take(stamp, event, connection)
        if owed := connection.data_to_send():
            await channel.link.write(owed)
    trace.ended = stamp


class _Answer:
    """Collects what comes for our stream."""

    def __init__(self, trace: Trace, limit: int) -> None:
        self._trace, self._limit = trace, limit
        self.stream = 0
        self.headers: dict[str, str] = {}
        self.message = bytearray()
        self.is_over = False
        self.goes_away: str | None = None

    def take(self, stamp: float, event: events.Event, connection: H2Connection) -> None:
        if isinstance(event, events.ConnectionTerminated):
            self.goes_away = f"error {event.error_code}"
        if getattr(event, "stream_id", None) != self.stream:
            return
        if isinstance(event, events.ResponseReceived):
            self._trace.headers, self._trace.phase = stamp, "transfer"
            self._note(event.headers)
            status = self.headers.get(":status", "")
            self._trace.status = int(status) if status.isdigit() else None
        elif isinstance(event, events.TrailersReceived):
            self._note(event.headers)
        elif isinstance(event, events.DataReceived):
            self._take_data(event, connection)
        elif isinstance(event, events.StreamReset):
            raise ProbeError("aborted", "reset", f"the server reset the stream: error {event.error_code}")
        elif isinstance(event, events.StreamEnded):
            self.is_over = True

    def _note(self, headers: Any) -> None:
        self.headers.update({str(name): str(value) for name, value in headers or []})

    def _take_data(self, event: events.DataReceived, connection: H2Connection) -> None:
        data = event.data or b""
        self._trace.bytes += len(data)
        if self._trace.bytes > self._limit or len(self.message) + len(data) > LONGEST_MESSAGE:
            raise ProbeError("body", "too_large", f"the answer is longer than {LONGEST_MESSAGE} bytes")
        self.message += data
        connection.acknowledge_received_data(event.flow_controlled_length, self.stream)


def _headers(target: Target, vantage: str) -> list[tuple[str, str]]:
    name = f"[{target.name}]" if ":" in target.name else target.name
    headers = [
        (":method", "POST"),
        (":scheme", "https" if target.is_tls else "http"),
        (":path", PATH),
        (":authority", f"{name}:{target.default_port}"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", AGENT),
        (PROBE_HEADER.lower(), vantage),
    ]
    if target.mark:
        headers.append((MARK_HEADER.lower(), target.mark))
    if target.bearer:
        headers.append(("authorization", f"Bearer {target.bearer}"))
    return headers + [(key.lower(), value) for key, value in target.headers.items()]


def _service(name: str) -> bytes:
    """Return a HealthCheckRequest: field 1, a string (255 bytes at most, so its length takes two bytes at most)."""
    if not name:
        return b""
    text = name.encode()
    length = bytes([len(text)]) if len(text) < 128 else bytes([len(text) & 0x7F | 0x80, len(text) >> 7])
    return b"\x0a" + length + text


def _framed(message: bytes) -> bytes:
    return b"\x00" + len(message).to_bytes(4, "big") + message


def _judge(answer: _Answer) -> None:
    if answer.headers.get(":status") != "200":
        raise ProbeError("http", "status", plain(f"status {answer.headers.get(':status')}"))
    status = answer.headers.get("grpc-status")
    if status is None:
        raise ProbeError("http", "protocol", "the answer has no grpc-status")
    if status != "0":
        reason = "no_health_service" if status == "12" else "unknown_service" if status == "5" else "grpc_status"
        raise ProbeError("http", reason, plain(f"grpc-status {status}: {answer.headers.get('grpc-message', '')}"))
    found = _status(bytes(answer.message))
    if found != SERVING:
        raise ProbeError("body", "not_serving", f"the service says {STATUSES.get(found, found)}")


def _status(framed: bytes) -> int:
    """Return field 1 of a HealthCheckResponse; 0 when it is left out, as protobuf does for zero. Raises ProbeError."""
    message = framed[5:]
    is_whole = len(framed) >= 5 and framed[0] == 0 and int.from_bytes(framed[1:5], "big") == len(message)
    if is_whole and not message:
        return 0
    if not is_whole or len(message) != 2 or message[0] != 0x08 or message[1] > 0x7F:
        raise ProbeError("body", "unreadable", "the answer is no HealthCheckResponse")
    return message[1]
