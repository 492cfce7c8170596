"""Waiting for what other threads and processes bring about, and ports for them to listen on."""

import asyncio
import itertools
import os
import random
import time

from panel.up.ports import LOOPBACK, is_free

PATIENCE_SECONDS = 90.0  # a busy machine takes seconds to start a process
FIRST_STEP_SECONDS, LONGEST_STEP_SECONDS = 0.01, 0.1
# Below the ports from which connections go out, so that none of those takes one between our asking and the listening.
FIRST_PORT, PORTS_OF_A_WORKER = 18_000, 900
_ports = itertools.count(random.SystemRandom().randrange(PORTS_OF_A_WORKER))


class _Wait:
    """Asks until the answer is the wanted one."""

    def __init__(self, ask, wanted, seconds, passing, what):
        self.ask, self.wanted, self.seconds, self.passing, self.what = ask, wanted, seconds, passing, what
        self.deadline = time.monotonic() + seconds
        self.step = FIRST_STEP_SECONDS
        self.answer = None

    def is_over(self):
        """Ask once; whether the answer is the wanted one. Raises AssertionError with the last answer when time is over."""
        try:
            self.answer = self.ask()
            if self.wanted(self.answer):
                return True
        except self.passing as error:
            self.answer = error
        if time.monotonic() > self.deadline:
            what = self.what() if callable(self.what) else self.what or f"{self.ask}"
            raise AssertionError(f"{what}: not within {self.seconds:g} s; the last answer was {self.answer!r}")
        self.step = min(self.step * 1.2, LONGEST_STEP_SECONDS)
        return False


def eventually(ask, wanted=bool, *, seconds=PATIENCE_SECONDS, passing=(), what=""):
    """Return what `ask` gives once `wanted` is true of it.

    Exceptions of the kinds `passing` count as an answer that is not wanted. `what` (text, or a function that gives it)
    leads the sentence of the failure.
    """
    wait = _Wait(ask, wanted, seconds, passing, what)
    while not wait.is_over():
        time.sleep(wait.step)
    return wait.answer


async def eventually_here(ask, wanted=bool, *, seconds=20.0, passing=(), what=""):
    """The same for what this event loop's other tasks bring about."""
    wait = _Wait(ask, wanted, seconds, passing, what)
    while not wait.is_over():  # noqa: ASYNC110  # what is waited for happens in another task or process
        await asyncio.sleep(wait.step)
    return wait.answer


def free_port():
    """Return a port of loopback that nothing listens on and that no other worker of this run is given."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST_PORT + worker % 16 * PORTS_OF_A_WORKER
    for number in itertools.islice(_ports, PORTS_OF_A_WORKER):
        port = first + number % PORTS_OF_A_WORKER
        if is_free(LOOPBACK, port):
            return port
    raise OSError("no port is free")
