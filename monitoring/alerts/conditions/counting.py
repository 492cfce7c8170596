"""Count rules: how many of the last probes were over a limit, spread over how much time. Counts as simulated for 30 s probes.

At another interval the windows grow with it, so that they hold at least as many samples as a rule needs, and the counts
follow the binomial table; see `at_interval`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Final

from monitoring.alerts.conditions.binomial import least_over
from monitoring.alerts.conditions.reading import NO_DATA, Reading
from monitoring.alerts.conditions.windows import Count, Quiet, Run, Window

MINUTE: Final = 60.0
HOUR: Final = 3600.0
NOMINAL_SECONDS: Final = 30.0
LEAST_FOR_NO_DATA: Final = 5 * MINUTE
INTERVALS_FOR_NO_DATA: Final = 5
# With longer intervals the windows would be longer than anybody wants to wait.
LONGEST_INTERVAL: Final = 600.0


@dataclass(frozen=True, slots=True)
class CountRule:
    """fires: any of these begins it; clears: all of any of these groups end it.

    enough: so many samples in `enough_seconds` before a Count is judged (a Run brings its own). share, alpha: what the counts
    reject and how surely, for other intervals; share None: counts grow in proportion.
    """

    name: str
    fires: tuple[Count, ...]
    runs: tuple[Run, ...]
    clears: tuple[tuple[Quiet, ...], ...]
    enough: int
    enough_seconds: float
    share: float | None = 0.01
    alpha: float = 0.001

    @property
    def longest_seconds(self) -> float:
        """Return how far back it looks."""
        quiets = [quiet.seconds for group in self.clears for quiet in group]
        return max([*(each.seconds for each in self.fires), *quiets])


P99_FAST: Final = CountRule(
    "p99_fast",
    fires=(Count(5, 30 * MINUTE, 5 * MINUTE, 3, 1, 5 * MINUTE),),
    runs=(Run(8, 10),),
    clears=((Quiet(0, 20 * MINUTE),),),
    enough=30,
    enough_seconds=30 * MINUTE,
)
P99_SLOW: Final = CountRule(
    "p99_slow",
    fires=(Count(18, 6 * HOUR, 30 * MINUTE, 6, 2, HOUR),),
    runs=(),
    clears=((Quiet(9, 6 * HOUR),), (Quiet(0, 2 * HOUR),)),
    enough=360,
    enough_seconds=6 * HOUR,
)
P95: Final = CountRule(
    "p95",
    fires=(Count(25, 2 * HOUR, 30 * MINUTE, 3), Count(14, 30 * MINUTE, 5 * MINUTE, 4)),
    runs=(),
    clears=(
        (Quiet(10, 2 * HOUR), Quiet(3, 30 * MINUTE)),
        (Quiet(0, 20 * MINUTE), Quiet(3, 30 * MINUTE)),
    ),
    enough=60,
    enough_seconds=2 * HOUR,
    share=None,
)
TTFT: Final = replace(P99_FAST, name="ttft")
TPOT: Final = replace(P99_FAST, name="tpot", runs=())
ERROR_RATE: Final = replace(P99_FAST, name="error_rate", runs=())
COUNT_RULES: Final = {each.name: each for each in (P99_FAST, P99_SLOW, P95, TTFT, TPOT, ERROR_RATE)}


@lru_cache(maxsize=512)
def at_interval(rule: CountRule, interval_seconds: float) -> CountRule:
    """Return the rule for probes that come every so often.

    Slower than once a minute: windows are stretched until they hold half of what 30 s probes would give. Counts then are the
    least that chance does not explain (share, alpha), or as large a part of the samples as at 30 s.
    """
    if interval_seconds == NOMINAL_SECONDS:
        return rule
    factor = max(1.0, interval_seconds / (2 * NOMINAL_SECONDS))
    fires = tuple(
        replace(each.stretched(factor), least=_least(rule, each, each.seconds * factor / interval_seconds))
        for each in rule.fires
    )
    clears = tuple(tuple(_quiet(each, factor, interval_seconds) for each in group) for group in rule.clears)
    return replace(rule, fires=fires, clears=clears, enough_seconds=rule.enough_seconds * factor)


def _least(rule: CountRule, count: Count, samples: float) -> int:
    whole = max(int(samples), 1)
    if rule.share is not None:
        return least_over(whole, share=rule.share, alpha=rule.alpha)
    return max(ceil(count.least * whole * NOMINAL_SECONDS / count.seconds), 2)


def _quiet(quiet: Quiet, factor: float, interval_seconds: float) -> Quiet:
    stretched = quiet.stretched(factor)
    as_large = int(quiet.most * (stretched.seconds / interval_seconds) / (quiet.seconds / NOMINAL_SECONDS))
    return replace(stretched, most=as_large)


def is_fit(interval_seconds: float) -> bool:
    """Say whether probes come often enough for a count rule; the page says so where they do not."""
    return interval_seconds <= LONGEST_INTERVAL


def no_data_after(interval_seconds: float) -> float:
    """Return for how many seconds a series may give no valid sample before it counts as silent."""
    return max(INTERVALS_FOR_NO_DATA * interval_seconds, LEAST_FOR_NO_DATA)


def count_reading(rule: CountRule, window: Window, *, now: float) -> Reading:
    """Judge one series: no data when its newest valid sample is too old, or there are too few for any of its questions."""
    if not len(window.at) or window.at[-1] < now - no_data_after(window.interval_seconds):
        return NO_DATA
    fitted = at_interval(rule, window.interval_seconds)
    if any(each.holds(window, now) for each in fitted.runs):
        return Reading(is_breach=True)
    is_clear = any(all(each.holds(window, now) for each in group) for group in fitted.clears)
    if window.samples(now, fitted.enough_seconds) < fitted.enough:
        return Reading(is_clear=is_clear) if is_clear else NO_DATA
    return Reading(is_breach=any(each.holds(window, now) for each in fitted.fires), is_clear=is_clear)
