"""An hour of one card: its use in one word, and whether that is worth telling. Pure.

A window is judged by its maximum: one minute of work in sixty is work, because an average hides both the training that
pauses and the hours that were wasted. What idleness costs is counted by minutes, so that a card with one request an hour is
called working and still shows fifty-nine idle minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from monitoring.waste.enums import Ground, Use
from monitoring.waste.minutes import Judged

WINDOW_MINUTES: Final = 60
IDLE_MINUTES: Final = 55
MOST_UNKNOWN_SHARE: Final = 0.1
# A machine that was just set up has not been used yet: nobody is told before it worked once or has been up so long.
ARMED_AFTER: Final = timedelta(hours=2)

QUIET: Final = (Use.IDLE, Use.PARKED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The use of a window.

    ground: the most frequent ground of the minutes that decided. quiet_minutes: idle or parked; known_minutes: of all that
    were asked for, those that could be told.
    """

    use: Use
    ground: Ground
    quiet_minutes: int
    known_minutes: int
    minutes: int

    @property
    def coverage(self) -> float:
        """Return the share of minutes that could be told (0 to 1)."""
        return self.known_minutes / self.minutes if self.minutes else 0.0


def judge_window(judged: Sequence[Judged], *, is_standby: bool = False, minutes: int = WINDOW_MINUTES) -> Verdict:
    """Return the use of the last `minutes` minutes. judged: those that there are, at most so many.

    is_standby: it waits by somebody's wish (tagged so, or within a window in which it is kept warm).
    """
    known = [each for each in judged if each.use != Use.UNKNOWN]
    quiet = [each for each in known if each.use in QUIET]
    counts = {"quiet_minutes": len(quiet), "known_minutes": len(known), "minutes": minutes}
    working = [each for each in known if each.use == Use.WORKING]
    if working:
        return Verdict(Use.WORKING, _most(working), **counts)
    is_told = (
        minutes - len(known) <= MOST_UNKNOWN_SHARE * minutes and len(quiet) * WINDOW_MINUTES >= IDLE_MINUTES * minutes
    )
    if not is_told:
        unknown = [each for each in judged if each.use == Use.UNKNOWN]
        return Verdict(Use.UNKNOWN, _most(unknown) if unknown else Ground.NO_READINGS, **counts)
    if is_standby:
        return Verdict(Use.STANDBY, Ground.QUIET, **counts)
    is_parked = any(each.use == Use.PARKED for each in quiet)
    return Verdict(Use.PARKED if is_parked else Use.IDLE, Ground.QUIET, **counts)


def _most(judged: Sequence[Judged]) -> Ground:
    grounds = [each.ground for each in judged]
    return max(sorted(set(grounds)), key=grounds.count)


def is_armed(*, worked_at: datetime | None, up_since: datetime | None, now: datetime) -> bool:
    """Say whether idleness may be told of: the card worked at least once, or its machine has been up for two hours."""
    return worked_at is not None or (up_since is not None and now - up_since >= ARMED_AFTER)


def is_waste(verdict: Verdict, *, is_armed: bool) -> bool:
    """Say whether a window is one that somebody should hear of."""
    return is_armed and verdict.use in QUIET
