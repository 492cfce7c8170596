"""One replica on its way: started, watched, started again, drained, stopped. `step` is called often and never blocks."""

import logging
from typing import TYPE_CHECKING, Final

from fleet.agent.engines.contract import Exit, Look, StartError
from fleet.agent.engines.desk import Desk
from fleet.agent.engines.health import SERVING
from fleet.agent.engines.logs import last_line
from fleet.agent.engines.record import Record
from fleet.agent.engines.stop import Stop
from fleet.agent.engines.told import Told
from fleet.agent.engines.watch import Watch
from fleet.agent.orders import ReplicaOrder

if TYPE_CHECKING:
    from fleet.agent.engines.crew import Task

log = logging.getLogger(__name__)

_RUNNING: Final = frozenset({"starting", "ready", "not_ready", "draining"})
SOON_SECONDS: Final = 0.2


class CancelledError(Exception):
    """A start that is not wanted any more."""


class Replica(Told):
    """order: what should be so, None when nothing should; record: what was done so far.

    is_hurried: it is to be gone soon, callers or not. is_gone: nothing of it is left, and nothing is wanted.
    """

    def __init__(self, desk: Desk, record: Record, order: ReplicaOrder | None) -> None:
        super().__init__(desk, record)
        self.order = order
        self.is_hurried = False
        self.is_gone = False
        self._starting: Task[str] | None = None
        self._next_try = 0.0
        self._failures = 0
        self._stop: Stop | None = None

    # ---- orders

    def follow(self, order: ReplicaOrder | None) -> None:
        """Take another order, or None for none."""
        if order == self.order:
            return
        self.order = order
        self._next_try = 0.0

    # ---- steps

    def step(self) -> None:
        """Do the next thing, whatever it is."""
        now = self._desk.now()
        self._take_start(now)
        self._take_look(now)
        if not self.sight.is_clear or self._starting is not None:
            return
        if self._is_to_stop():
            self._step_stop(now)
            return
        self._stop = None
        look = self.sight.look
        if look is not None and look.ended is None:
            self._step_running(look, now)
        elif look is not None and look.ended is not None and self.record.state in _RUNNING:
            self._note_exit(look.ended, now)
        elif look is None and self.record.state in _RUNNING:
            self._note_exit(
                Exit(detail="It was gone when this agent looked for it, as after a restart of the machine."), now
            )
        else:
            self._step_start(now)

    def _is_to_stop(self) -> bool:
        """Say whether what runs must not run (any longer), or whether something ended is only in the way."""
        order, look = self.order, self.sight.look
        if order is None or order.wanted != "run" or self.is_hurried:
            return not (order is not None and order.wanted == "pull" and look is None)
        if self._stop is not None:
            return True
        generations = {self.record.order.generation, order.generation}
        is_other = look is not None and {look.generation} != generations
        is_failed_running = self.record.is_over and look is not None and look.ended is None
        return is_other or (is_failed_running and self.record.order.generation == order.generation)

    def _step_stop(self, now: float) -> None:
        """Come one step nearer to nothing running."""
        if self._stop is None:
            self._stop = self._new_stop()
        if self.is_hurried:
            self._stop.hurry()
        if not self._stop.step(self.sight.look, now):
            if not self.record.is_over:
                self._say("draining", detail=self._stop.detail)
            self.sight.hasten(now + SOON_SECONDS)
            return
        self._stop = None
        self._watch, self.word = None, ""
        self.sight.forget(is_clear=True)
        if self.order is None or self.is_hurried:
            self._say("stopped")
            self.is_gone = True
        elif self.order.wanted == "drain":
            if not self.record.is_over or self.record.state == "draining":
                self._say("stopped")
        elif self.record.order.generation == self.order.generation and self.record.is_over:
            self._say("failed", self.record.reason, self.record.detail)
        else:
            self._renew(self.order)

    def _new_stop(self) -> Stop:
        record, order = self.record, self.order
        is_same = order is not None and order.generation == record.order.generation
        # A drain that an earlier run of the agent began goes on.
        waited = (self._desk.now_ms() - record.since_ms) / 1000.0 if record.state == "draining" else 0.0
        stop = Stop(
            self._desk,
            order if order is not None and is_same else record.order,
            self._ensure_watch(),
            waited_seconds=max(waited, 0.0),
            is_announced=order is not None and order.wanted == "drain",
        )
        # One that answers nobody has nobody to wait for. Without a word the agent has just found it.
        was_serving = self.word in SERVING or (not self.word and record.serving_since_ms is not None)
        stop.is_drained = not was_serving
        return stop

    def _renew(self, order: ReplicaOrder) -> None:
        """Begin another generation, or the same after something else: nothing of before counts."""
        self._failures, self._next_try = 0, 0.0
        self._begin_record(Record(order=order, since_ms=self._desk.now_ms()))
        self._say("pending")

    def _step_start(self, now: float) -> None:
        order = self.order
        assert order is not None  # noqa: S101 (else it is to stop)
        if order.generation != self.record.order.generation or (
            self.record.state == "stopped" and order.wanted == "run"
        ):
            self._renew(order)
        if self.record.is_over or now < self._next_try:
            return
        if order.wanted == "pull" and self.record.image_id:
            return
        self.record.order = order
        self.percent = None
        self.keep()  # before it runs: an agent that is killed in between finds it again
        path = self._desk.book.log_of(order)
        self._starting = self._desk.workers.do(lambda: self._desk.start(order, path, self._tell))

    def _tell(self, percent: int) -> None:
        """Take a pull's progress, in the thread that pulls. Raises CancelledError when nobody wants it any more."""
        order = self.order
        if (
            self.is_hurried
            or order is None
            or order.generation != self.record.order.generation
            or order.wanted == "drain"
        ):
            raise CancelledError
        if percent != self.percent:
            self.percent = percent
            self._say("pulling")

    def _take_start(self, now: float) -> None:
        if self._starting is None or not self._starting.is_done:
            return
        task, self._starting = self._starting, None
        self.percent = None
        try:
            image_id = task.result()
        except CancelledError:
            self._say("pending")
        except StartError as error:
            self._note_trouble(error, now)
        except Exception as error:
            log.warning("Replica %s cannot be started.", self.record.order.id, exc_info=error)
            self._note_trouble(StartError("spawn_failed", f"{type(error).__name__}: {error}"), now)
        else:
            self.record.trouble_since_ms, self.record.image_id = None, image_id
            if self.record.order.wanted == "pull":
                self.percent = 100
                self._say("pending")
            else:
                self._note_start()

    def _note_start(self) -> None:
        record = self.record
        record.starts = [*record.starts[-20:], self._desk.now_ms()]
        record.serving_since_ms = None
        self._desk.book.drop_old_logs(record.order)
        self._watch = None
        self.sight.forget(is_clear=False)
        self.reader.earn_start()
        self.word = "starting"
        self._say("starting")

    def _note_trouble(self, error: StartError, now: float) -> None:
        """Try again later, or not when that is of no use or has been tried for as long as a start may take."""
        record, at_ms = self.record, self._desk.now_ms()
        record.trouble_since_ms = record.trouble_since_ms or at_ms
        is_late = at_ms - record.trouble_since_ms > record.order.start_limit_seconds * 1000.0
        if error.is_permanent or is_late:
            record.is_over = True
            self._say("failed", error.reason, str(error))
            return
        self._next_try = now + self._backoff()
        self._say("pending", error.reason, str(error))

    def _backoff(self) -> float:
        pace = self._desk.pace
        self._failures += 1
        return float(min(pace.longest_backoff, pace.first_backoff * 2.0 ** min(self._failures - 1, 32)))

    # ---- running

    def _step_running(self, look: Look, now: float) -> None:
        watch = self._ensure_watch()
        watch.step(now)
        if watch.take_news():
            self._desk.changed()
        word = watch.word(now, is_frozen=look.is_frozen)
        is_same = word == self.word
        self.word = word
        if watch.has_answered and self.record.serving_since_ms is None:
            self.record.serving_since_ms = self._desk.now_ms()
        if word == "starting":
            self._hold_to_limit(look, watch)
        elif word in SERVING:
            self._say("ready", detail="" if word == "ok" else watch.complaint, is_news=not is_same)
        else:
            reason = "stalled" if word == "stalled" else "check_failed"
            frozen = "The engine's process is stopped (SIGSTOP, or its container paused)." if look.is_frozen else ""
            self._say("not_ready", reason, frozen or watch.complaint, is_news=not is_same)

    def _hold_to_limit(self, look: Look, watch: Watch) -> None:
        seconds = self.record.order.start_limit_seconds
        if look.age_seconds <= seconds:
            self._say("starting", detail=watch.complaint)
            return
        line = self._last_line()
        self.record.is_over = True
        said = f" Its log ends with: {line}" if line else " Its log is empty."
        self._say("failed", "start_limit", f"No request was answered within {seconds:g} s of its start.{said}")

    def _note_exit(self, ended: Exit, now: float) -> None:
        """Plan another start, or none after too many within a short time."""
        record, pace, at_ms = self.record, self._desk.pace, self._desk.now_ms()
        record.exit_code = ended.exit_code
        self._watch, self.word = None, "down"
        line = self._last_line()
        detail = " ".join(part for part in (ended.sentence, line) if part)
        recent = [start for start in record.starts if at_ms - start < pace.crash_window * 1000.0]
        if record.serving_since_ms is not None and at_ms - record.serving_since_ms > pace.steady * 1000.0:
            self._failures = 0
        record.serving_since_ms = None
        if len(recent) > pace.most_starts:
            record.is_over = True
            minutes = pace.crash_window / 60.0
            self._say("failed", "crash_loop", f"Ended {len(recent)} times within {minutes:g} min. {detail}")
            return
        record.restarts += 1
        self._next_try = now + self._backoff()
        self._say("pending", ended.reason, detail)

    def _last_line(self) -> str:
        return last_line(self._desk.book.log_of(self.record.order))

    def _ensure_watch(self) -> Watch:
        if self._watch is None:
            desk = self._desk
            has_answered = self.record.serving_since_ms is not None
            self._watch = Watch(
                self.record.order,
                desk.http,
                desk.checkers,
                desk.pace,
                ledger=desk.ledger,
                has_answered=has_answered,
            )
        return self._watch

    # ---- looking

    def _take_look(self, now: float) -> None:
        try:
            self.sight.take()
        except OSError as error:
            self._note_unseen(error)
        if self._starting is None:
            self.sight.go_on(self.record.order, now)

    def _note_unseen(self, error: OSError) -> None:
        """Say why a replica that was never started is not; what is known of one that runs stays so."""
        log.debug("Replica %s cannot be looked at: %s", self.record.order.id, error)
        if self.sight.is_clear or self.record.starts:
            return
        if self.order is None or self.is_hurried:
            self._say("stopped")
            self.is_gone = True
        elif self.record.state == "pending":
            self._say("pending", "no_runtime", str(error))
