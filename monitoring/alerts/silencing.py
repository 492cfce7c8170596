"""When a silence holds and what it matches: pure. Weekly windows follow the clock of their zone, over midnight too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

WEEK: Final = 7
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the week on one clock. days: on which it begins (Monday 0); it ends on the next day when `end` is not later."""

    days: frozenset[int]
    start: time
    end: time


def window_read(given: Mapping[str, Any]) -> Window | None:
    """Return the window of a silence, None when it has none. Raises ValueError or KeyError for what is none."""
    if not given:
        return None
    days = frozenset(int(each) for each in given.get("days") or range(WEEK))
    if not days <= set(range(WEEK)):
        raise ValueError("days")
    return Window(days, time.fromisoformat(given["from"]), time.fromisoformat(given["to"]))


def occurrence(window: Window, zone: ZoneInfo, day: datetime) -> tuple[datetime, datetime]:
    """Return when the window that begins on this local day begins and ends, in UTC.

    A clock time that a change skips is taken as if the clock had not changed yet; of one that comes twice the beginning is
    the first and the end the second, so that no minute of what people see on the clock is left out.
    """
    start = datetime.combine(day.date(), window.start, tzinfo=zone)
    end = datetime.combine(day.date(), window.end, tzinfo=zone).replace(fold=1)
    if window.end <= window.start:
        end = datetime.combine(day.date() + DAY, window.end, tzinfo=zone).replace(fold=1)
    first, last = start.astimezone(UTC), _end(end)
    # All of it lies in the hour that is skipped: it takes place after the change, as long as it would have been.
    return (first, last) if last > first else (first, first + (end.replace(tzinfo=None) - start.replace(tzinfo=None)))


def _end(end: datetime) -> datetime:
    """Return the end in UTC; fold=1 of a time that a change skips would lie an hour too early."""
    found = end.astimezone(UTC)
    is_skipped = found.astimezone(end.tzinfo).replace(tzinfo=None, fold=0) != end.replace(tzinfo=None, fold=0)
    return end.replace(fold=0).astimezone(UTC) if is_skipped else found


def is_within(window: Window | None, zone: str, at: datetime) -> bool:
    """Say whether a moment lies within the window (always, without one). The end belongs to it no more."""
    if window is None:
        return True
    clock = ZoneInfo(zone)
    local = at.astimezone(clock)
    for back in (0, 1):
        day = local - back * DAY
        if day.weekday() in window.days:
            start, end = occurrence(window, clock, day)
            if start <= at < end:
                return True
    return False


def matches(matchers: Mapping[str, str], facts: Mapping[str, str | Sequence[str]]) -> bool:
    """Say whether everything that is asked for holds. A fact with several values (the rules of an episode) has one of them."""
    for name, wanted in matchers.items():
        found = facts.get(name, "")
        if wanted != found if isinstance(found, str) else wanted not in found:
            return False
    return bool(matchers)
