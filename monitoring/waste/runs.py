"""Minutes written as one character each, and the quiet runs among them. Pure.

The last hour of a card is a word of sixty characters, so that a verdict, a strip of cells on a page and the run that goes on
need no other memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from monitoring.waste.enums import Ground, Use
from monitoring.waste.minutes import Judged

MINUTE: Final = timedelta(minutes=1)
# Shorter pauses are how bursts of work look: they cost money too, and nobody could use them.
LEAST_MINUTES: Final = 10
# So many minutes that cannot be told do not end a run, and do not count in it.
MOST_UNKNOWN_IN_A_ROW: Final = 5

_SIGNS: Final = {
    "k": Judged(Use.WORKING, Ground.KERNELS),
    "m": Judged(Use.WORKING, Ground.MEDIA),
    "w": Judged(Use.WORKING, Ground.POWER),
    "r": Judged(Use.WORKING, Ground.REQUESTS),
    "h": Judged(Use.WORKING, Ground.HOST),
    "p": Judged(Use.PARKED, Ground.QUIET),
    "i": Judged(Use.IDLE, Ground.QUIET),
    ".": Judged(Use.UNKNOWN, Ground.NO_READINGS),
    "?": Judged(Use.UNKNOWN, Ground.HIDDEN),
    "x": Judged(Use.UNKNOWN, Ground.CONTRADICTION),
    "!": Judged(Use.UNKNOWN, Ground.UNREADABLE),
}
_SIGN_OF: Final = {judged: sign for sign, judged in _SIGNS.items()}


def written(judged: Iterable[Judged]) -> str:
    """Return minutes as a word, one character each, oldest first."""
    return "".join(_SIGN_OF[each] for each in judged)


def read(word: str) -> list[Judged]:
    """Return the minutes of a word."""
    return [_SIGNS[sign] for sign in word]


@dataclass(frozen=True, slots=True)
class Run:
    """Quiet minutes that follow one another. ended_at: the end of the last quiet one; is_open: nothing has ended it yet."""

    use: Use
    started_at: datetime
    ended_at: datetime
    quiet_minutes: int
    is_open: bool


def quiet_runs(word: str, started_at: datetime) -> list[Run]:
    """Return the runs of idle or parked minutes, however short. started_at: of the first minute."""
    found: list[Run] = []
    use, first, last, quiet = None, 0, 0, 0
    for place, minute in enumerate([*read(word), None]):
        is_quiet = minute is not None and minute.use in {Use.IDLE, Use.PARKED}
        is_gap = minute is not None and minute.use == Use.UNKNOWN and place - last < MOST_UNKNOWN_IN_A_ROW
        if use is not None and not is_gap and (minute is None or minute.use != use):
            is_open = minute is None
            found.append(Run(use, started_at + first * MINUTE, started_at + last * MINUTE, quiet, is_open))
            use = None
        if is_quiet and minute is not None:
            if use is None:
                use, first, quiet = minute.use, place, 0
            quiet, last = quiet + 1, place + 1
    return found


def quiet_count(word: str, started_at: datetime, *, start: datetime, end: datetime) -> int:
    """Return how many quiet minutes of a word lie from start to end."""
    span = word[max((start - started_at) // MINUTE, 0) : (end - started_at) // MINUTE]
    return sum(minute.use in {Use.IDLE, Use.PARKED} for minute in read(span))
