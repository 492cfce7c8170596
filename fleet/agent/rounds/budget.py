"""What sweeps may still take: time, requests and tokens, whichever ends first."""

import time
from collections.abc import Callable

from fleet.agent.probes.result import ProbeResult
from fleet.agent.rounds.plan import Stop, Sweeps

MOST_FAILED = 0.2  # of requests, once there are enough to say so
ENOUGH = 10


class OverError(Exception):
    """Nothing more may be asked; `stopped` of the budget says why."""


class Budget:
    """Counts what was asked. stopped: why it ended, "" while it goes on."""

    def __init__(self, sweeps: Sweeps, clock: Callable[[], float] = time.monotonic) -> None:
        self._sweeps, self._clock = sweeps, clock
        self._began = clock()
        self.requests = self.tokens = self.failed = 0
        self.stopped: Stop = ""

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return self._clock() - self._began

    def take(self, tokens: int) -> None:
        """Count one request of at most so many tokens before it is sent. Raises OverError."""
        if self.seconds >= self._sweeps.most_seconds:
            self._end("seconds")
        if self.requests >= self._sweeps.most_requests:
            self._end("requests")
        if self.tokens + tokens > self._sweeps.most_tokens:
            self._end("tokens")
        self.requests += 1
        self.tokens += tokens

    def note(self, result: ProbeResult) -> None:
        """Count how a request came out. Raises OverError when too many fail: an engine that is ill is not loaded any more."""
        if result.outcome != "ok":
            self.failed += 1
            if self.requests >= ENOUGH and self.failed > MOST_FAILED * self.requests:
                self._end("errors")

    def _end(self, why: Stop) -> None:
        self.stopped = self.stopped or why
        raise OverError(why)
