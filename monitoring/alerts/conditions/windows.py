"""Windows of samples that are over a limit or not, and the three questions that count rules ask of them."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

# Of the samples that an interval promises, so many must be there before "none was over" means anything.
COVERAGE: Final = 0.5
# A run of samples may take so many times as long as it should before it counts as one no more.
SLACK: Final = 3.0


@dataclass(frozen=True, slots=True)
class Window:
    """Valid samples of one series, oldest first. at: Unix seconds; hits: those of them that were over the limit."""

    at: NDArray[np.float64]
    hits: NDArray[np.float64]
    interval_seconds: float

    @classmethod
    def of(cls, at: NDArray[np.float64], over: NDArray[np.bool_], interval_seconds: float) -> "Window":
        """Return the window of samples and whether each was over."""
        return cls(at, at[over], interval_seconds)

    def samples(self, now: float, seconds: float) -> int:
        """Return how many samples lie in (now − seconds, now]."""
        return _within(self.at, now, seconds)

    def over(self, now: float, seconds: float) -> int:
        """Return how many of those were over."""
        return _within(self.hits, now, seconds)

    def slots(self, now: float, seconds: float, slot_seconds: float) -> int:
        """Return in how many distinct slots of the clock the samples lie that were over."""
        first = int(self.hits.searchsorted(now - seconds, side="right"))
        last = int(self.hits.searchsorted(now, side="right"))
        return len({int(each // slot_seconds) for each in self.hits[first:last].tolist()})


def _within(moments: NDArray[np.float64], now: float, seconds: float) -> int:
    if not len(moments):
        return 0
    return int(moments.searchsorted(now, side="right")) - int(moments.searchsorted(now - seconds, side="right"))


@dataclass(frozen=True, slots=True)
class Count:
    """At least `least` over in the last `seconds`, in at least `slots` slots, `recently` of them in the last `recent_seconds`."""

    least: int
    seconds: float
    slot_seconds: float
    slots: int
    recently: int = 0
    recent_seconds: float = 0.0

    def holds(self, window: Window, now: float) -> bool:
        """Say whether it holds; the cheap questions come first, since almost always none is over."""
        return (
            window.over(now, self.seconds) >= self.least
            and (not self.recently or window.over(now, self.recent_seconds) >= self.recently)
            and window.slots(now, self.seconds, self.slot_seconds) >= self.slots
        )

    def stretched(self, factor: float) -> "Count":
        """Return it over windows `factor` times as long."""
        return replace(
            self,
            seconds=self.seconds * factor,
            slot_seconds=self.slot_seconds * factor,
            recent_seconds=self.recent_seconds * factor,
        )


@dataclass(frozen=True, slots=True)
class Run:
    """At least `least` of the last `of` samples over, and those not older than they should be."""

    least: int
    of: int

    def holds(self, window: Window, now: float) -> bool:
        """Say whether it holds."""
        if len(window.hits) < self.least:
            return False
        until = int(window.at.searchsorted(now, side="right"))
        if until < self.least:
            return False
        first = float(window.at[max(until - self.of, 0)])
        if first < now - self.of * window.interval_seconds * SLACK:
            return False
        inside = window.hits.searchsorted(now, side="right") - window.hits.searchsorted(first, side="left")
        return bool(inside >= self.least)


@dataclass(frozen=True, slots=True)
class Quiet:
    """At most `most` over in the last `seconds`, of which half the samples are there at least: a gap is no quiet."""

    most: int
    seconds: float

    def holds(self, window: Window, now: float) -> bool:
        """Say whether it holds."""
        if window.over(now, self.seconds) > self.most:
            return False
        return window.samples(now, self.seconds) >= COVERAGE * self.seconds / window.interval_seconds

    def stretched(self, factor: float) -> "Quiet":
        """Return it over a window `factor` times as long."""
        return replace(self, seconds=self.seconds * factor)
