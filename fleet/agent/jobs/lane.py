"""Does the panel's jobs one at a time, in a thread of its own: claimed first, reported on, ended at their deadline.

Nothing else of the agent waits for it. An outcome is kept on disk until the panel has it.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

from fleet.agent import wire
from fleet.agent.backoff import Backoff
from fleet.agent.jobs.child import END_SECONDS, Child
from fleet.agent.jobs.journal import Journal
from fleet.agent.jobs.kinds import KINDS
from fleet.agent.jobs.task import Said, Task
from fleet.agent.panel import PanelClient, PanelError, RefusedError
from fleet.agent.policy import Policy
from fleet.agent.state import Identity, StateDirectory

LONGEST_SECONDS: Final = 8 * 3600.0
PROGRESS_SECONDS: Final = 1.0
LAST_SEND_SECONDS: Final = 3.0
PROBING: Final = frozenset({"diagnose", "load", "probe_round"})
_WANTED: Final = frozenset({"claimed", "running"})

log = logging.getLogger(__name__)


class JobLane:
    """The jobs of one run of the agent; `follow` may be called by any thread."""

    def __init__(
        self,
        state: StateDirectory,
        identity: Identity,
        policy: Policy,
        *,
        start_child: Callable[[Task], Child] = Child,
    ) -> None:
        self._state = state
        self._identity = identity
        self._policy = policy
        self._start_child = start_child
        self._run_id = str(uuid4())
        self._journal = Journal(state.jobs_path)
        self._client = PanelClient(identity.panel_url, identity.agent_token, identity.ca_file)
        self._lock = threading.Condition()
        self._version = -1
        self._orders: list[wire.JobOrder] = []
        self._own_ports: frozenset[int] = frozenset()
        self._over: set[int] = set()
        self._present: tuple[int, Child] | None = None
        self._is_closing = False
        self._backoff = Backoff(1.0, 60.0)
        self._retry_at = 0.0
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin to do what is asked."""
        self._journal.load()
        self._thread.start()

    def follow(self, version: int, orders: Sequence[wire.JobOrder], own_ports: Collection[int] = ()) -> None:
        """Take the open jobs of the panel; the one under way is stopped when it is not among them.

        own_ports: of this machine's replicas, which jobs may probe on loopback.
        """
        with self._lock:
            if version < self._version:
                return  # an answer that was overtaken
            self._version = version
            self._orders = list(orders)
            self._own_ports = frozenset(own_ports)
            self._over &= {order.id for order in orders}
            if self._present is not None and not self._is_wanted(self._present[0]):
                self._present[1].kill()
            self._lock.notify()

    def close(self) -> None:
        """Stop what is under way and tell the panel, if it listens at once."""
        with self._lock:
            self._is_closing = True
            if self._present is not None:
                self._present[1].kill()
            self._client.hurry(LAST_SEND_SECONDS)
            self._lock.notify()
        if self._thread.is_alive():
            self._thread.join(2 * LAST_SEND_SECONDS)

    # ---- the lane's own thread

    def _work(self) -> None:
        while True:
            with self._lock:
                order = self._next()
                while not self._is_closing and order is None and not self._is_send_due():
                    self._lock.wait(self._seconds_to_retry())
                    order = self._next()
                if self._is_closing:
                    break
            if self._is_send_due():
                self._send_waiting()
            if order is not None:
                self._do(order)
        self._send_waiting()
        self._client.close()

    def _next(self) -> wire.JobOrder | None:
        """Return the oldest order that is neither done nor known, None while the panel does not answer."""
        if time.monotonic() < self._retry_at:
            return None
        fresh = (order for order in self._orders if order.id not in self._over and order.id not in self._journal)
        return next(fresh, None)

    def _is_send_due(self) -> bool:
        return bool(self._journal.waiting()) and time.monotonic() >= self._retry_at

    def _seconds_to_retry(self) -> float | None:
        left = self._retry_at - time.monotonic()
        return max(left, 0.05) if left > 0 else None

    def _is_wanted(self, job_id: int) -> bool:
        return any(order.id == job_id for order in self._orders)

    def _tell(self, job_id: int, report: wire.JobReport) -> str:
        """Return the state that the panel answers; `refused` when it knows no such job. Raises PanelError."""
        try:
            state = self._client.job(job_id, report).state
        except RefusedError as error:
            log.warning("The panel does not take what is said of job %s: %s", job_id, error)
            state = "refused"
        except PanelError as error:
            self._retry_at = time.monotonic() + self._backoff.next_delay()
            log.info("Job %s cannot be told of: %s", job_id, error)
            raise
        self._backoff.reset()
        self._retry_at = 0.0
        return state

    def _send_waiting(self) -> None:
        for job_id, report in self._journal.waiting():
            with suppress(PanelError):
                self._tell(job_id, report)
                self._over.add(job_id)
                self._journal.forget(job_id)
                continue
            return

    def _do(self, order: wire.JobOrder) -> None:
        """Claim one job, run it, keep its outcome."""
        refusal = self._refusal(order)
        if refusal is None:
            self._journal.begin(order.id, self._run_id)
            try:
                state = self._tell(order.id, wire.JobReport(self._run_id, "claimed"))
            except PanelError:
                self._journal.forget(order.id)
                return
            report = self._run(order) if state in _WANTED else None
        else:
            report = wire.JobReport(self._run_id, "failed", reason=refusal)
        if report is None:
            self._over.add(order.id)
            self._journal.forget(order.id)
        else:
            self._journal.end(order.id, report)

    def _refusal(self, order: wire.JobOrder) -> str | None:
        if order.kind in self._policy.forbidden_jobs or (order.kind in PROBING and not self._policy.allow_probes):
            return "forbidden"
        return None if order.kind in KINDS else "unknown_kind"

    def _task(self, order: wire.JobOrder, seconds: float) -> Task:
        return Task(
            job_id=order.id,
            kind=order.kind,
            arguments=order.arguments,
            seconds=seconds,
            panel_url=self._identity.panel_url,
            agent_token=self._identity.agent_token,
            ca_file=self._identity.ca_file,
            directory=str(self._state.path),
            allow_private_targets=self._policy.allow_private_targets,
            tell_process_names=self._policy.tell_process_names,
            vantage=f"server-{self._identity.server_id}",
            probe_networks=self._policy.probe_networks,
            own_ports=sorted(self._own_ports),
        )

    def _run(self, order: wire.JobOrder) -> wire.JobReport | None:
        """Return a job's outcome; None when it was cancelled."""
        seconds = min(max(float(order.time_limit_seconds), 1.0), LONGEST_SECONDS)
        try:
            child = self._start_child(self._task(order, seconds))
        except OSError as error:
            return wire.JobReport(self._run_id, "failed", reason="crashed", detail=str(error)[:500])
        with self._lock:
            self._present = (order.id, child)
            if self._is_closing or not self._is_wanted(order.id):
                child.kill()
        log.info("Job %s (%s) runs as process %s.", order.id, order.kind, child.pid)
        deadline = time.monotonic() + seconds
        try:
            last = self._listen(order.id, child, deadline)
        finally:
            complaint = child.end()
            with self._lock:
                self._present = None
                is_cancelled = not self._is_wanted(order.id)
        return self._outcome(last, complaint, is_cancelled=is_cancelled, is_late=time.monotonic() >= deadline)

    def _listen(self, job_id: int, child: Child, deadline: float) -> Said | None:
        """Pass progress on until the job ends or is killed; returns its last line with an outcome."""
        told_at, outcome, pending = 0.0, None, None
        while time.monotonic() < deadline + END_SECONDS:
            try:
                said = child.next(0.2)
            except TimeoutError:
                said = pending
            else:
                if said is None:
                    break
                if said.result is not None or said.failed:
                    outcome = said
                    continue
            if time.monotonic() >= deadline and not child.is_killed:
                child.kill()
            pending = said
            if pending is not None and time.monotonic() >= told_at + PROGRESS_SECONDS:
                told_at = time.monotonic()
                self._pass_on(job_id, pending, child)
                pending = None
        return outcome

    def _pass_on(self, job_id: int, said: Said, child: Child) -> None:
        report = wire.JobReport(self._run_id, "running", percent=said.percent, step=said.step[:32])
        with suppress(PanelError):
            if self._tell(job_id, report) not in _WANTED:
                with self._lock:
                    self._orders = [order for order in self._orders if order.id != job_id]
                child.kill()

    def _outcome(
        self, last: Said | None, complaint: str, *, is_cancelled: bool, is_late: bool
    ) -> wire.JobReport | None:
        if is_cancelled:
            return None
        if last is not None and last.result is not None:
            return wire.JobReport(self._run_id, "succeeded", percent=100, result=last.result)
        if last is not None:
            return wire.JobReport(self._run_id, "failed", reason=last.failed[:32], detail=last.detail[:500])
        reason = "interrupted" if self._is_closing else "time_limit" if is_late else "crashed"
        return wire.JobReport(self._run_id, "failed", reason=reason, detail=complaint)
