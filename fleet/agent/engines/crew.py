"""A few threads that do what may take long, so that nobody else waits: made when first needed, left behind at the end."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Task(Generic[T]):
    """Something that is being done. `is_done` first, then `result`."""

    def __init__(self, job: Callable[[], T]) -> None:
        self._job = job
        self._done = threading.Event()
        self._value: T | None = None
        self._error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has returned or raised."""
        return self._done.is_set()

    def result(self) -> T:
        """Return what it returned, or raise what it raised. Only when `is_done`."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # None only where T allows it

    def run(self) -> None:
        """Do it; for the crew."""
        try:
            self._value = self._job()
        except BaseException as error:  # noqa: BLE001 (carried to who asked, and knows what is expected)
            self._error = error
        self._done.set()


class Crew:
    """At most `most` daemon threads. wake: called whenever something is done."""

    def __init__(self, name: str, most: int, wake: Callable[[], None]) -> None:
        self._name = name
        self._most = most
        self._wake = wake
        self._waiting: queue.SimpleQueue[Task[object]] = queue.SimpleQueue()
        self._lock = threading.Condition()
        self._threads = self._busy = 0

    def do(self, job: Callable[[], T]) -> Task[T]:
        """Have something done and return at once."""
        task = Task(job)
        with self._lock:
            self._busy += 1
            is_short = self._busy > self._threads and self._threads < self._most
            self._threads += is_short
        self._waiting.put(task)  # type: ignore[arg-type]  # the crew does not look at what comes out
        if is_short:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return task

    def await_idle(self, seconds: float) -> bool:
        """Wait until nothing is being done; returns whether it came to that in time."""
        with self._lock:
            return self._lock.wait_for(lambda: self._busy == 0, seconds)

    def _work(self) -> None:
        while True:
            self._waiting.get().run()
            with self._lock:
                self._busy -= 1
                self._lock.notify_all()
            self._wake()
