"""Down: several places agree that nothing answers, or the only place insists."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from monitoring.alerts.conditions.reading import NO_DATA, QUIET, Reading

FAILURES: Final = 3
FAILURES_ALONE: Final = 5
SUCCESSES: Final = 2
AGREE: Final = 2


@dataclass(frozen=True, slots=True)
class Sight:
    """What one place saw last: results of the same kind in a row, one of the two is 0. at: of the newest, Unix seconds."""

    failures: int
    successes: int
    at: float


def down_reading(sights: Collection[Sight], *, now: float, silent_after: float) -> Reading:
    """Judge by the places that are not silent: two must agree; a single one must see more failures, and is said to be alone.

    It is over when as many places (or the single one) saw two successes in a row. Repeats of one place never make a quorum:
    failures of one path come in bursts.
    """
    seen = [each for each in sights if each.at >= now - silent_after]
    if not seen:
        return NO_DATA
    quorum = min(AGREE, len(seen))
    needed = FAILURES if len(seen) >= AGREE else FAILURES_ALONE
    if sum(each.failures >= needed for each in seen) >= quorum:
        return Reading(is_breach=True)
    if sum(each.successes >= SUCCESSES for each in seen) >= quorum:
        return QUIET
    return Reading()
