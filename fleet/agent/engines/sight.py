"""What is seen of one replica on this machine, again and again, by others' threads: a container engine may hang."""

from pathlib import Path
from typing import TYPE_CHECKING

from fleet.agent.engines.contract import Look, Runtime
from fleet.agent.engines.desk import Desk
from fleet.agent.orders import ReplicaOrder

if TYPE_CHECKING:
    from fleet.agent.engines.crew import Task


class Sight:
    """look: the last one, None when nothing was there. is_clear: whether one was taken since the last start."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._looking: Task[Look | None] | None = None
        self._next = 0.0
        self.look: Look | None = None
        self.is_clear = False

    def take(self) -> None:
        """Take in what was seen, if something was. Raises OSError when it could not be seen; what is known stays so."""
        if self._looking is not None and self._looking.is_done:
            task, self._looking = self._looking, None
            self.look = task.result()
            self.is_clear = True

    def go_on(self, order: ReplicaOrder, now: float) -> None:
        """Have another look taken when it is time. order: the one that it was started by."""
        if self._looking is None and now >= self._next:
            self._next = now + self._desk.pace.look
            runtime, log_path = self._desk.runtime_for(order), self._desk.book.log_of(order)
            self._looking = self._desk.lookers.do(lambda: _look(runtime, order.id, log_path))

    def hasten(self, at: float) -> None:
        """Look again no later than at this instant."""
        self._next = min(self._next, at)

    def forget(self, *, is_clear: bool) -> None:
        """Let nothing count that was seen before now. is_clear: it is known that nothing is there."""
        self._looking, self.look, self._next, self.is_clear = None, None, 0.0, is_clear


def _look(runtime: Runtime, replica: int, log_path: Path) -> Look | None:
    """See how it is first, then what it said: of one that has ended all of it is here then."""
    look = runtime.look(replica)
    if look is not None:
        runtime.fetch_log(replica, log_path)
    return look
