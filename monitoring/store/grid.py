"""Which buckets a chart gets, and from which level they are made. Pure."""

from dataclasses import dataclass
from typing import Final

from monitoring.store.tables import DAY_MS, FIVE_MINUTES, HOUR, HOUR_MS, MINUTE, ROLLUP_SECONDS

RAW: Final = 0  # the level of the samples themselves; the others are named by the seconds of their slots
LEVEL_NAMES: Final = {RAW: "raw", MINUTE: "1m", FIVE_MINUTES: "5m", HOUR: "1h"}
# Every step below an hour divides the hour, every step below a day divides the day: buckets never cut a rollup's slot.
STEPS_SECONDS: Final = (
    *(
        1,
        2,
        5,
        10,
        15,
        20,
        30,
        60,
        120,
        180,
        240,
        300,
        600,
        900,
        1200,
        1800,
        3600,
        7200,
        10_800,
        14_400,
        21_600,
        43_200,
    ),
    *(86_400 * days for days in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)),
)


@dataclass(frozen=True, slots=True)
class Grid:
    """Buckets [first_ms + i × step_ms, + step_ms), aligned to whole steps of Unix time; `level` feeds them."""

    first_ms: int
    step_ms: int
    buckets: int
    level: int

    @property
    def end_ms(self) -> int:
        """Return the end of the last bucket."""
        return self.first_ms + self.buckets * self.step_ms


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each level is kept, in ms."""

    raw_ms: int
    minute_ms: int


def grid_for(*, start_ms: int, end_ms: int, points: int, now_ms: int, retention: Retention) -> Grid:
    """Return at most `points` buckets that cover [start, end): the finest that the points and the retention allow.

    A range that begins before a level's retention is answered from the next coarser one, so that no chart starts with a
    hole. Raises ValueError for a range that is empty or needs steps longer than any.
    """
    if end_ms <= start_ms or points < 1:
        raise ValueError("The range must end after it starts, and have at least one point.")
    age_ms = now_ms - start_ms
    finest_seconds = (
        STEPS_SECONDS[0] if age_ms <= retention.raw_ms else MINUTE if age_ms <= retention.minute_ms else HOUR
    )
    for seconds in STEPS_SECONDS:
        step_ms = seconds * 1000
        first_ms = start_ms // step_ms * step_ms
        buckets = -(-(end_ms - first_ms) // step_ms)
        if seconds >= finest_seconds and buckets <= points:
            return Grid(first_ms, step_ms, buckets, _level(seconds))
    raise ValueError("The range is too long.")


def _level(step_seconds: int) -> int:
    return max((level for level in ROLLUP_SECONDS if step_seconds % level == 0), default=RAW)


def row_span_ms(level: int) -> int:
    """Return how much time one rollup row covers: a day for hours, else an hour."""
    return DAY_MS if level == HOUR else HOUR_MS


def slots_per_row(level: int) -> int:
    """Return how many slots one rollup row has."""
    return row_span_ms(level) // (level * 1000)
