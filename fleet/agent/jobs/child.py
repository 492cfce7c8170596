"""A job in a process of its own: it can be killed whatever it does, and the agent's own work never waits for it."""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import Final

import msgspec

from fleet.agent.jobs.task import Said, Task

LONGEST_LINE: Final = 400_000
# A process that a dead driver holds does not even end when it is killed; it is left to itself then.
END_SECONDS: Final = 10.0
NICENESS: Final = 10
STDERR_LINES: Final = 5


class Child:
    """One running job. `lines` may be read by one thread, `kill` called by any."""

    def __init__(self, task: Task) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        self._said: queue.Queue[Said | None] = queue.Queue()
        self._errors: deque[str] = deque(maxlen=STDERR_LINES)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fleet.agent.jobs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._is_killed = threading.Event()
        for work in (self._read, self._read_errors):
            threading.Thread(target=work, name="job-output", daemon=True).start()
        self._give(task)

    def _give(self, task: Task) -> None:
        assert self._process.stdin is not None  # noqa: S101 (asked for above)
        try:
            with self._process.stdin as pipe:
                pipe.write(msgspec.json.encode(task))
        except OSError:
            return  # it ended before it was told what to do; its output says so

    def next(self, seconds: float) -> Said | None:
        """Return the next line, None when nothing more comes. Raises TimeoutError when none came in so many seconds."""
        try:
            return self._said.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None

    def kill(self) -> None:
        """End it now."""
        self._is_killed.set()
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    @property
    def is_killed(self) -> bool:
        """Whether somebody ended it."""
        return self._is_killed.is_set()

    def end(self) -> str:
        """Wait for its end, for a while; returns the last of what it complained."""
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        return " ".join(self._errors)[:500]

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101
        with self._process.stdout as pipe:
            while line := pipe.readline(LONGEST_LINE):
                try:
                    self._said.put(msgspec.json.decode(line, type=Said))
                except msgspec.MsgspecError:
                    continue  # a library that prints
        self._said.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        with self._process.stderr as pipe:
            for line in pipe:
                self._errors.append(line.decode(errors="replace").strip()[:300])


def lower_priority() -> None:
    """Let everybody else's work go first; for the child itself."""
    os.nice(NICENESS)


def end_with_parent() -> None:
    """Let this process not outlive the agent; for the child itself."""
    import ctypes

    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
