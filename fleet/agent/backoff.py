"""Waiting longer after each failure, for ever, with full jitter so that a fleet does not come back in step."""

import random


class Backoff:
    """Delays that double from `first` to `longest` seconds; each is drawn evenly between 0 and that (full jitter)."""

    def __init__(self, first: float, longest: float, *, has_jitter: bool = True) -> None:
        self.first = first
        self.longest = longest
        self.failures = 0
        self._has_jitter = has_jitter

    def next_delay(self) -> float:
        """Count one more failure and return how long to wait, in seconds."""
        ceiling = min(self.longest, self.first * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return random.uniform(0.0, ceiling) if self._has_jitter else ceiling  # noqa: S311 (spreads load, guards nothing)

    def reset(self) -> None:
        """Forget the failures: something worked."""
        self.failures = 0
