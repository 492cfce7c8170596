"""Tells the panel how the replicas are, and what they log: at once when something changes, and every few seconds."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import uuid4

from fleet.agent import clock
from fleet.agent.backoff import Backoff
from fleet.agent.engines.pace import Pace
from fleet.agent.engines.replica import Replica
from fleet.agent.engines.runtimes import Runtimes
from fleet.agent.listener import REFUSED_SECONDS, error_delay
from fleet.agent.orders import LIMITS, LogChunk, LogsReport, ReplicasReport, ReplicaStatus
from fleet.agent.panel import PanelClient, PanelError, RefusedError, TokenRefusedError

# Changes that come together are told together.
TOGETHER_SECONDS: Final = 0.05
# How long the first report waits until it is known what runs; a container engine may hang.
LOOK_OVER_SECONDS: Final = 5.0
MAX_MESSAGE_BYTES: Final = 512 * 1024

log = logging.getLogger(__name__)


class Subject(Protocol):
    """What is told of: all replicas of this machine, as the loop that reconciles them has them."""

    runtimes: Runtimes

    @property
    def orders_version(self) -> int:
        """Of the orders that the replicas follow."""
        ...

    @property
    def is_looked_over(self) -> bool:
        """Whether it was seen of every replica if it runs."""
        ...

    def statuses(self) -> list[ReplicaStatus]:
        """Return what is to be told."""
        ...

    def replicas(self) -> list[Replica]:
        """Return those whose logs are told."""
        ...

    def forget_stopped(self, statuses: Sequence[ReplicaStatus]) -> None:
        """Tell no more of those that the panel knows to be stopped."""
        ...


class Messenger:
    """Sends the present state, never an old one; what could not be sent is not queued but said anew."""

    def __init__(self, engines: Subject, client: PanelClient, pace: Pace) -> None:
        self._engines = engines
        self._client = client
        self._pace = pace
        self._run_id = str(uuid4())
        self._seq = 0
        self._turn = threading.Condition()
        self._is_news = self._is_closing = False
        self._backoff = Backoff(1.0, 60.0)
        self._next_report = 0.0
        self._not_before = 0.0
        self._thread = threading.Thread(target=self._work, name="engine-reports", daemon=True)

    def start(self) -> None:
        """Begin to tell."""
        self._thread.start()

    def hasten(self) -> None:
        """Have the next report sent at once."""
        with self._turn:
            self._is_news = True
            self._turn.notify()

    def close(self, seconds: float) -> None:
        """Tell nothing any more."""
        with self._turn:
            self._is_closing = True
            self._turn.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)

    # ---- its own thread

    def _work(self) -> None:
        deadline = time.monotonic() + LOOK_OVER_SECONDS
        while not self._engines.is_looked_over and time.monotonic() < deadline and not self._is_closing:
            time.sleep(TOGETHER_SECONDS)
        while self._await_turn():
            try:
                if self._is_news or time.monotonic() >= self._next_report:
                    self._report()
                self._ship_logs()
            except TokenRefusedError as error:
                self._pause(error, REFUSED_SECONDS)
            except PanelError as error:
                self._pause(error, error_delay(error) or self._backoff.next_delay())
            except Exception:  # whatever it is, the panel must hear of the replicas again
                log.exception("The panel could not be told of the replicas.")
                self._not_before = time.monotonic() + self._pace.report
            else:
                self._backoff.reset()
        self._client.close()

    def _await_turn(self) -> bool:
        """Wait until something is to be told; returns whether to go on."""
        with self._turn:
            while not self._is_closing:
                now = time.monotonic()
                wait = self._pace.logs if now >= self._not_before else self._not_before - now
                if self._is_news and now >= self._not_before:
                    break
                if not self._turn.wait(wait) and time.monotonic() >= self._not_before:
                    break
            is_closing = self._is_closing
        if not is_closing and self._is_news:
            time.sleep(TOGETHER_SECONDS)
        return not is_closing

    def _pause(self, error: PanelError, seconds: float) -> None:
        log.info("The panel was not told of the replicas: %s", error)
        self._is_news = True
        self._not_before = time.monotonic() + seconds

    def _report(self) -> None:
        usable, unusable = self._engines.runtimes.told()
        self._is_news = False
        statuses = self._engines.statuses()[: LIMITS["replicas"]]
        self._seq += 1
        report = ReplicasReport(
            run_id=self._run_id,
            seq=self._seq,
            at_ms=clock.now().at_ms,
            orders_version=self._engines.orders_version,
            replicas=statuses,
            runtimes=usable,
            unusable=unusable,
        )
        self._client.replicas(report)
        self._engines.forget_stopped(statuses)
        self._next_report = time.monotonic() + self._pace.report

    def _ship_logs(self) -> None:
        """Send what there is of each log, as far as each may."""
        now, taken, chunks, size = time.monotonic(), [], [], 0
        for replica in self._engines.replicas():
            reader = replica.reader
            chunk = reader.next(now, is_last=replica.record.state in {"failed", "stopped", "pending"})
            if chunk is not None:
                chunks.append(chunk)
                taken.append((reader, chunk, reader.size))
                size += len(chunk.text)
            if len(chunks) >= LIMITS["log_chunks"] or size >= MAX_MESSAGE_BYTES:
                break
        if not chunks:
            return
        self._send_logs(chunks)
        for reader, chunk, bytes_read in taken:
            reader.taken(chunk, bytes_read)

    def _send_logs(self, chunks: list[LogChunk]) -> None:
        try:
            self._client.replica_logs(LogsReport(chunks))
        except RefusedError as error:
            log.warning("The panel does not take these lines of log: %s", error)  # nor will it later
