"""When a message may go: grouping, quiet hours, back-off. Pure; `at` is an argument everywhere."""

from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

GROUP_WAIT: Final = timedelta(seconds=60)
BACK_OFF: Final = (
    timedelta(seconds=10), timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10), timedelta(minutes=30),
    timedelta(hours=1),
)  # fmt: skip
GIVES_UP: Final = timedelta(hours=24)
JITTER: Final = 0.2


def retry_delay(attempt: int, *, chance: float) -> timedelta:
    """Return how long to wait after the attempt of this number (from 1). chance: from 0 to 1, spreads it by ±20 %."""
    base = BACK_OFF[min(max(attempt, 1), len(BACK_OFF)) - 1]
    return base * (1 - JITTER + 2 * JITTER * chance)


def _instant(day: datetime, wall: time, zone: ZoneInfo) -> datetime:
    """Return when a wall clock of this zone shows that time on that day; in a gap, the moment after it."""
    local = datetime.combine(day.date(), wall, tzinfo=zone)
    instant = local.astimezone(UTC)
    back = instant.astimezone(zone)
    if back.replace(tzinfo=None) != local.replace(tzinfo=None):  # the clock jumped over it
        return (
            local.replace(fold=1).astimezone(UTC)
            + (local.utcoffset() or timedelta())
            - (local.replace(fold=1).utcoffset() or timedelta())
        )
    return instant


def quiet_until(at: datetime, *, start: time | None, end: time | None, zone: ZoneInfo) -> datetime | None:
    """Return when the quiet hours in which `at` lies end, or None when it lies in none.

    start, end: wall times in `zone`; a window may span midnight. An hour that is there twice is quiet both times.
    """
    if start is None or end is None or start == end:
        return None
    local = at.astimezone(zone)
    wall = local.time()
    is_quiet = start <= wall < end if start < end else wall >= start or wall < end
    if not is_quiet:
        return None
    day = local if wall < end else local + timedelta(days=1)
    until = _instant(day, end, zone)
    if until <= at:  # the end's hour comes twice and this is its second turn
        until = datetime.combine(day.date(), end, tzinfo=zone).replace(fold=1).astimezone(UTC)
    return until if until > at else None
