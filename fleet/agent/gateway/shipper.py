"""Reports what went through the gateway: a report for each span, written to disk before it is sent, counted once.

The place in the log up to which a report counts lies in the same file as the report. So a kill at any moment neither loses
a line nor counts it twice: what is not in a report is read again, what is in one is not.
"""

import logging
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

import msgspec

from fleet.agent.backoff import Backoff
from fleet.agent.gateway.accesslog import AccessLog, Cursor
from fleet.agent.gateway.dataplane import Reading
from fleet.agent.gateway.envoy.admin import AdminError
from fleet.agent.gateway.envoy.layout import replace
from fleet.agent.gateway.traffic import SPAN_MS, Line, span_of, traffic_of
from fleet.agent.orders import TrafficReport
from fleet.agent.panel import PanelError, RefusedError
from fleet.agent.spool import Spool

# The data plane writes its log this late at the most; a span is closed only then.
LATE_MS: Final = 1_500
TICK_SECONDS: Final = 1.0
SPOOL_BYTES: Final = 32 * 1024 * 1024
SPOOL_SECONDS: Final = 24 * 3600.0
CURSOR: Final = "cursor.json"
_HEAD: Final = struct.Struct("<QQQ")  # inode and offset of the cursor (0: none), span

log = logging.getLogger(__name__)


class Place(msgspec.Struct, frozen=True):
    """How far reports go: everything before the cursor, and no span after this one."""

    cursor: Cursor | None
    span_ms: int


class Panel(Protocol):
    """Takes reports."""

    def traffic(self, body: bytes) -> None:
        """Store one. Raises PanelError."""


class Plane(Protocol):
    """The parts of the data plane that tell of traffic."""

    name: str

    def in_flight(self) -> dict[str, int]:
        """Return requests under way by endpoint."""

    def reopen_log(self) -> None:
        """Begin a new log file. Raises AdminError."""


class Shipper:
    """Reads, cuts and sends in a thread of its own; nothing that serves callers waits for it."""

    def __init__(
        self, folder: Path, log_path: Path, panel: Panel, plane: Plane, reading: Callable[[], Reading]
    ) -> None:
        self._folder = folder
        self._log = AccessLog(log_path)
        self._panel = panel
        self._plane = plane
        self._reading = reading
        self._spool = Spool(folder / "traffic", max_bytes=SPOOL_BYTES, max_age_seconds=SPOOL_SECONDS)
        self._last_span = 0
        self._log.start_at(self._take_up())
        self._run_id = str(uuid4())
        self._seq = 0
        self._backoff = Backoff(1.0, 60.0)
        self._send_at = 0.0
        self._told: tuple[object, ...] = ()
        self._next_span = span_of(_now_ms()) + SPAN_MS
        self._wake = threading.Condition()
        self._is_woken = self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="gateway-traffic", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Have it look at once: the state of the data plane may be another one."""
        with self._wake:
            self._is_woken = True
            self._wake.notify()

    def close(self) -> None:
        """Stop; what was not sent waits on disk."""
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(3.0)

    def turn(self, now_ms: int) -> None:
        """Cut what is due and send what waits."""
        if now_ms >= self._next_span + LATE_MS or self._next_span > now_ms + 2 * SPAN_MS:
            self._next_span = span_of(now_ms - LATE_MS) + SPAN_MS
            self.cut(now_ms)
            self._rotate()
        elif self._is_news() and not len(self._spool):
            self._append([], span_of(now_ms), {}, None)
        if time.monotonic() >= self._send_at:
            self._send()

    def cut(self, now_ms: int) -> None:
        """Write a report for each span that is over, in the order of the log.

        Each span is told of once: a line that comes after its span was told of counts in the next one.
        """
        if self._last_span > now_ms + SPAN_MS:
            self._last_span = 0  # the clock was set back
        current = span_of(now_ms - LATE_MS)
        in_flight = self._plane.in_flight()
        waiting: list[Line] = []
        span, cursor, is_told = 0, None, False
        for raw, behind in self._log.lines():
            line = _line(raw)
            if line is None:
                cursor = behind
                continue
            begins = max(span_of(line.ended_ms), self._last_span + SPAN_MS if self._last_span else 0)
            if current <= begins <= now_ms + SPAN_MS:
                break  # of a span that goes on; read again then
            if waiting and begins > span:
                self._append(waiting, span, {}, cursor)
                is_told, waiting = True, []
            span, cursor = (begins if not waiting else span), behind
            waiting.append(line)
        if waiting or not is_told:
            self._append(waiting, span if waiting else current - SPAN_MS, in_flight, cursor if waiting else None)

    # ---- inside

    def _append(self, lines: list[Line], from_ms: int, in_flight: dict[str, int], cursor: Cursor | None) -> None:
        reading = self._reading()
        self._told = (reading.state, reading.applied_version, reading.detail)
        self._seq += 1
        report = TrafficReport(
            run_id=self._run_id,
            seq=self._seq,
            from_ms=from_ms,
            state=reading.state,
            applied_version=reading.applied_version,
            endpoints=traffic_of(lines, in_flight),
            detail=reading.detail[:500],
            data_plane=self._plane.name,
        )
        if report.endpoints:
            self._last_span = max(self._last_span, from_ms)
        inode, offset = (cursor.inode, cursor.offset) if cursor is not None else (0, 0)
        head = _HEAD.pack(inode, offset, self._last_span)
        if not report.endpoints and cursor is None and len(self._spool):
            return  # nothing to say but how it is, and that is out of date when this is sent
        self._spool.append(self._run_id, self._seq, len(lines), head + msgspec.msgpack.encode(report))
        if cursor is not None:
            self._log.advance(cursor)

    def _is_news(self) -> bool:
        reading = self._reading()
        return (reading.state, reading.applied_version, reading.detail) != self._told

    def _send(self) -> None:
        while not self._is_closing and (waiting := self._spool.oldest()) is not None:
            entry, body = waiting
            try:
                self._panel.traffic(body[_HEAD.size :])
            except RefusedError as error:
                log.warning("The panel will never take what went through the gateway in one span: %s", error)
                self._keep_cursor(body)
                self._spool.refuse(entry)
                continue
            except PanelError as error:
                log.info("Traffic of the gateway waits: %s", error)
                self._send_at = time.monotonic() + self._backoff.next_delay()
                return
            self._backoff.reset()
            self._keep_cursor(body)
            self._spool.done(entry)

    def _keep_cursor(self, body: bytes) -> None:
        """Note how far reports go before the file of this one is removed."""
        place = _place_of(body)
        if place.cursor is not None:
            with suppress(OSError):
                replace(self._folder / CURSOR, msgspec.json.encode(place))

    def _take_up(self) -> Cursor | None:
        """Return how far the reports of earlier runs go."""
        newest = Place(None, 0)
        with suppress(OSError, msgspec.MsgspecError):
            newest = msgspec.json.decode((self._folder / CURSOR).read_bytes(), type=Place)
        for path in sorted((self._folder / "traffic").glob("*.batch")):
            with suppress(OSError, struct.error):
                place = _place_of(path.read_bytes())
                newest = Place(place.cursor or newest.cursor, max(place.span_ms, newest.span_ms))
        self._last_span = newest.span_ms
        return newest.cursor

    def _rotate(self) -> None:
        self._log.drop_old()
        if self._log.is_large:
            with suppress(OSError, AdminError):
                self._log.move_aside()
                self._plane.reopen_log()

    def _work(self) -> None:
        while not self._is_closing:
            try:
                self.turn(_now_ms())
            except Exception:  # what nobody thought of must not end the reports
                log.exception("The gateway's traffic cannot be reported.")
            with self._wake:
                if not self._is_closing and not self._is_woken:
                    self._wake.wait(TICK_SECONDS)
                self._is_woken = False


def _line(raw: bytes) -> Line | None:
    try:
        line = msgspec.json.decode(raw, type=Line)
        int(line.t)
    except (msgspec.MsgspecError, ValueError):
        return None
    return line


def _place_of(body: bytes) -> Place:
    inode, offset, span_ms = _HEAD.unpack_from(body)
    return Place(Cursor(inode, offset) if inode else None, span_ms)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
