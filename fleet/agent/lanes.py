"""Calls that may never return, kept from holding up anything else: each runs in a thread that can be left behind.

A call into the driver can hang for ever (a process in D state cannot even be killed). Jobs normally run one after another
in a single thread. When one overstays its deadline its thread is left to it, the jobs behind it get a thread each, and the
job's key is not asked again until that thread comes back: at most one thread per key is ever lost.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from fleet.agent import clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The job returned."""

    value: T


@dataclass(frozen=True, slots=True)
class Failed:
    """The job raised."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Silent:
    """The job has not returned since `since_ms` (wall clock)."""

    since_ms: int


class _Lane(Generic[T]):
    """One daemon thread that walks through some jobs."""

    def __init__(self, jobs: Iterable[tuple[str, Callable[[], T]]]) -> None:
        self._jobs = list(jobs)
        self._turn = threading.Condition()
        self._abandoned = threading.Event()
        self._is_finished = False
        self._position = 0
        self._began = time.monotonic()
        self.began_ms = clock.now().at_ms
        self.results: dict[str, Done[T] | Failed] = {}
        self.thread = threading.Thread(target=self._walk, name="nvml", daemon=True)
        self.thread.start()

    def _walk(self) -> None:
        for position, (key, job) in enumerate(self._jobs):
            with self._turn:
                if self._abandoned.is_set():
                    return
                self._position, self._began, self.began_ms = position, time.monotonic(), clock.now().at_ms
            result = _run(job)
            with self._turn:
                if self._abandoned.is_set():
                    return
                self.results[key] = result
        with self._turn:
            self._is_finished = True
            self._turn.notify()

    def wait(self, deadline: float) -> str | None:
        """Wait for the end; returns the key of the first job that takes longer than `deadline` seconds, left behind."""
        with self._turn:
            while not self._is_finished:
                left = self._began + deadline - time.monotonic()
                if left <= 0:
                    self._abandoned.set()
                    return self._jobs[self._position][0]
                self._turn.wait(left)
        return None


def _run(job: Callable[[], T]) -> Done[T] | Failed:
    try:
        return Done(job())
    except BaseException as error:  # noqa: BLE001 (carried to the thread that asked, which knows what is expected)
        return Failed(error)


class Errand(Generic[T]):
    """One job in a thread of its own whose result is waited for as long as one likes, and again later."""

    def __init__(self, job: Callable[[], T]) -> None:
        self.began_ms = clock.now().at_ms
        self._began = time.monotonic()
        self._job = job
        self._outcome: Done[T] | Failed | None = None
        self._thread = threading.Thread(target=self._run, name="nvml-errand", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._outcome = _run(self._job)

    @property
    def age_seconds(self) -> float:
        """How long ago it began."""
        return time.monotonic() - self._began

    def outcome(self, seconds: float) -> Done[T] | Failed | None:
        """Return what came of it, None when it still runs after so many seconds more."""
        self._thread.join(seconds)
        return self._outcome


class Lanes:
    """Runs jobs by key under a deadline each, and remembers which keys have a thread that has not come back."""

    def __init__(self) -> None:
        self._left_behind: dict[str, tuple[threading.Thread, int]] = {}

    def silent_since(self, key: str) -> int | None:
        """Return since when (wall clock, ms) a call for this key has not returned; None when none is out."""
        entry = self._left_behind.get(key)
        if entry is None:
            return None
        if not entry[0].is_alive():
            del self._left_behind[key]
            return None
        return entry[1]

    def has_silent(self) -> bool:
        """Say whether any call is still out."""
        return any(self.silent_since(key) is not None for key in list(self._left_behind))

    def run(self, jobs: Mapping[str, Callable[[], T]], deadline: float) -> dict[str, Done[T] | Failed | Silent]:
        """Run the jobs; each has `deadline` seconds, and after the first that overstays the others share one deadline."""
        outcomes: dict[str, Done[T] | Failed | Silent] = {}
        waiting: list[tuple[str, Callable[[], T]]] = []
        for key, job in jobs.items():
            since_ms = self.silent_since(key)
            if since_ms is None:
                waiting.append((key, job))
            else:
                outcomes[key] = Silent(since_ms)
        if not waiting:
            return {key: outcomes[key] for key in jobs}
        lane = _Lane(waiting)
        stuck = lane.wait(deadline)
        outcomes.update(lane.results)
        if stuck is not None:
            outcomes[stuck] = self._leave_behind(stuck, lane)
            rest = [(key, job) for key, job in waiting if key not in outcomes]
            outcomes.update(self._fan_out(rest, deadline))
        return {key: outcomes[key] for key in jobs}

    def _fan_out(
        self, jobs: list[tuple[str, Callable[[], T]]], deadline: float
    ) -> dict[str, Done[T] | Failed | Silent]:
        """Run each job in a thread of its own, all under one deadline."""
        outcomes: dict[str, Done[T] | Failed | Silent] = {}
        lanes = {key: _Lane([(key, job)]) for key, job in jobs}
        for key, lane in lanes.items():
            if lane.wait(deadline) is None:
                outcomes.update(lane.results)
            else:
                outcomes[key] = self._leave_behind(key, lane)
        return outcomes

    def _leave_behind(self, key: str, lane: _Lane[T]) -> Silent:
        self._left_behind[key] = (lane.thread, lane.began_ms)
        return Silent(lane.began_ms)
