"""When tasks are due: Celery beat on the monotonic clock, with intervals that change while it runs.

Beat's own scheduler counts in wall-clock time, so that a clock set back by an hour would stop the agent for an hour, and
it spins for the last ten milliseconds before each task.
"""

import threading
import time
from functools import partial
from typing import Any, Final

from celery import bootsteps
from celery.beat import EmbeddedService, Scheduler
from celery.worker import WorkController

LONGEST_SLEEP_SECONDS: Final = 1.0
TASK_OF: Final = {"sample": "agent.sample", "report": "agent.report", "sync": "agent.sync"}
# What is due at the same time goes in this order, a little apart: a report wants the sample before it.
OFFSET_SECONDS: Final = {"sample": 0.0, "report": 0.2, "sync": 0.4}


class Timetable:
    """Due times by name, in monotonic seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._intervals: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def set_interval(self, name: str, seconds: float) -> None:
        """Have something due so often from now on, sooner than it was if the new interval says so."""
        with self._lock:
            now = time.monotonic()
            self._intervals[name] = seconds
            first = now + OFFSET_SECONDS[name]
            self._due[name] = min(self._due[name], now + seconds) if name in self._due else first

    def hasten(self, name: str, seconds: float) -> None:
        """Have something due in so many seconds at the latest, once; its own rhythm goes on from there."""
        with self._lock:
            if name in self._due:
                self._due[name] = min(self._due[name], time.monotonic() + seconds)

    def take_due(self) -> list[tuple[str, float]]:
        """Return the names that are due with their intervals, and move them on; what was missed is not made up for."""
        with self._lock:
            now = time.monotonic()
            due = sorted(name for name, at in self._due.items() if at <= now)
            for name in due:
                next_due = self._due[name] + self._intervals[name]
                self._due[name] = next_due if next_due > now else now + self._intervals[name]
            return [(name, self._intervals[name]) for name in due]

    def seconds_to_next(self) -> float:
        """Return how long nothing is due, at most a second."""
        with self._lock:
            next_due = min(self._due.values(), default=float("inf"))
        return min(max(next_due - time.monotonic(), 0.001), LONGEST_SLEEP_SECONDS)


class TimetableScheduler(Scheduler):
    """Beat's scheduler that sends what a timetable says is due."""

    def __init__(self, timetable: Timetable, *arguments: Any, **options: Any) -> None:
        self._timetable = timetable
        super().__init__(*arguments, **options)

    def setup_schedule(self) -> None:
        """Have no entries of beat's own."""

    def tick(self, *_arguments: Any, **_options: Any) -> float:
        """Send what is due; returns how long to sleep."""
        for name, interval in self._timetable.take_due():
            self.app.send_task(TASK_OF[name], expires=max(interval, 1.0))
        return self._timetable.seconds_to_next()


class BeatStep(bootsteps.StartStopStep):
    """Runs beat as a thread of the worker; as a process it would send into a memory that nobody reads."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, worker: WorkController, timetable: Timetable, **options: Any) -> None:
        self._timetable = timetable
        super().__init__(worker, **options)

    def create(self, worker: WorkController) -> Any:
        """Make the thread; the worker starts and stops it."""
        return EmbeddedService(worker.app, thread=True, scheduler_cls=partial(TimetableScheduler, self._timetable))
