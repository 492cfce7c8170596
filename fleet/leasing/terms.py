"""How a provider counts the time of a run: in which steps, how much at least, how much of it free. Pure.

A run is a stretch billed in full. Its first `free_seconds` cost nothing; what is left counts as at least `least_seconds`, and
is rounded up to whole steps once the run has ended. While it runs it counts up to now, so that a sum never runs ahead of time.
Each start begins a run of its own, as providers that round up count it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from fleet.enums import BilledMode
from fleet.leasing.costs import Interval

LONGEST_STEP: Final = timedelta(days=2)  # beyond its end: rounded up, or counted as the least
TIME_TERMS: Final = ("step_seconds", "least_seconds", "free_seconds")


class Run(Interval, Protocol):
    """A billed stretch with its terms in seconds: the step in which it counts (1 exact, 60, 3600), the least, the free."""

    step_seconds: int
    least_seconds: int
    free_seconds: int


@dataclass(slots=True)
class Billed:
    """A stretch as it is billed; ended_at None while it runs."""

    mode: str
    started_at: datetime
    ended_at: datetime | None


def billed(runs: Iterable[Run]) -> Iterator[Billed]:
    """Yield stretches as the provider counts them; a run within its free time is left out."""
    for run in runs:
        if run.mode != BilledMode.FULL:
            yield Billed(run.mode, run.started_at, run.ended_at)
        elif (counted := _counted(run)) is not None:
            yield counted


def _counted(run: Run) -> Billed | None:
    start = run.started_at + timedelta(seconds=run.free_seconds)
    if run.ended_at is None:
        return Billed(run.mode, start, None)
    if run.ended_at <= start:
        return None
    length = max(run.ended_at - start, timedelta(seconds=run.least_seconds))
    step = timedelta(seconds=run.step_seconds)
    return Billed(run.mode, start, start + (-(-length // step) * step if run.step_seconds > 1 else length))
