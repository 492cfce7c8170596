"""Stopping one engine: wait until nobody is served any more, ask it to end, end it, clear away what remains."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fleet.agent.engines import checks
from fleet.agent.engines.contract import Look, Runtime
from fleet.agent.engines.desk import Desk
from fleet.agent.engines.watch import Watch
from fleet.agent.orders import ReplicaOrder

if TYPE_CHECKING:
    from fleet.agent.engines.crew import Task

HURRIED_GRACE_SECONDS: Final = 10.0
AGAIN_SECONDS: Final = 5.0


class Stop:
    """One stop. order: the one that what runs was started by, with the limits that hold now. is_announced: gateways know.

    waited_seconds: how long it is drained already; a restart of the agent does not begin that anew.
    """

    def __init__(
        self, desk: Desk, order: ReplicaOrder, watch: Watch, *, waited_seconds: float, is_announced: bool
    ) -> None:
        self._desk = desk
        self._order = order
        self._watch = watch
        self._began = desk.now()
        self._ends_at = self._began + order.drain_limit_seconds - waited_seconds
        self._quiet_seconds = desk.pace.quiet if is_announced else desk.pace.unannounced_quiet
        self._quiet_since: float | None = None
        self._grace = desk.pace.grace
        self._task: Task[None] | None = None
        self._asked_at: float | None = None
        self._next_hard = 0.0
        self.is_drained = False
        self.detail = ""

    def hurry(self) -> None:
        """Wait for no caller any more, and not long for the engine."""
        self.is_drained = True
        self._grace = min(self._grace, HURRIED_GRACE_SECONDS)

    def step(self, look: Look | None, now: float) -> bool:
        """Do the next thing; returns whether nothing is left."""
        if look is None:
            return True
        if self._task is not None:
            return self._take(look)
        if look.ended is not None:
            self._do(lambda: self._runtime.clear(self._order.id))
        elif not self.is_drained:
            self._drain(look, now)
        elif self._asked_at is None:
            self._asked_at = now
            self.detail = "It was asked to end."
            self._do(lambda: self._runtime.end(self._order.id, is_hard=False))
        elif now - self._asked_at >= self._grace and now >= self._next_hard:
            self._next_hard = now + AGAIN_SECONDS
            self.detail = f"It did not end within {self._grace:g} s of being asked, so it is killed."
            self._do(lambda: self._runtime.end(self._order.id, is_hard=True))
        return False

    # ---- inside

    @property
    def _runtime(self) -> Runtime:
        return self._desk.runtime_for(self._order)

    def _do(self, job: Callable[[], None]) -> None:
        self._task = self._desk.workers.do(job)

    def _take(self, look: Look) -> bool:
        """Say whether the last thing is done and was the last."""
        assert self._task is not None  # noqa: S101 (asked by who called)
        if not self._task.is_done:
            return False
        task, self._task = self._task, None
        task.result()
        return look.ended is not None

    def _drain(self, look: Look, now: float) -> None:
        self._watch.step(now, is_serving_wanted=False)
        count = self._count(look, now)
        self._quiet_since = (self._quiet_since or now) if count == 0 else None
        is_quiet = self._quiet_since is not None and now - self._quiet_since >= self._quiet_seconds
        is_stuck = look.is_frozen or self._watch.word(now, is_frozen=False) == "stalled"
        if is_quiet or is_stuck or now >= self._ends_at:
            self.is_drained = True
        said = "An unknown number of requests runs" if count is None else f"{count} requests run"
        self.detail = f"{said}; at most {self._order.drain_limit_seconds:g} s are waited for."

    def _count(self, look: Look, now: float) -> int | None:
        """Return how many requests the engine still works on, None when that cannot be told."""
        counters = self._watch.fresh(now)
        if counters is not None and counters.in_flight is not None:
            return int(counters.in_flight) if self._watch.counters_at >= self._began else None
        return checks.connections(self._order, look.pid if self._order.runtime == "container" else None)
