"""What a GPU is doing, in one word, from its newest readings. Pure; static/js/activity.js says the same in the browser.

"Utilisation" is the share of the last period in which at least one kernel ran, so 0 says nothing of memory: a loaded,
quiet card is not a free one. A reading that is missing is not 0: a card whose utilisation the driver hides (MIG) cannot
be called idle, and a process list that is hidden or empty does not make a card free by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import models
from django.utils.translation import gettext_lazy as _

from fleet.enums import GpuState

# Below this share of time a card does nothing worth the name; video engines count from the first percent.
BUSY_FROM_PERCENT: Final = 3.0
# Memory that the driver itself holds stays below this share of a card.
HELD_FROM_SHARE: Final = 0.02
FRESH_INTERVALS: Final = 3
LEAST_FRESH_SECONDS: Final = 15.0
# NVML's reasons for lower clocks that mean trouble: hardware slowdown, software and hardware thermal, power brake.
THROTTLE_REASONS: Final = 0x8 | 0x20 | 0x40 | 0x80
HOT_BELOW_SLOWDOWN_CELSIUS: Final = 5
HOT_FROM_CELSIUS: Final = 90

WORK_METRICS: Final = ("utilization_percent", "sm_activity_percent")
ENGINE_METRICS: Final = ("encoder_percent", "decoder_percent")


class Activity(models.TextChoices):
    """What a card is doing."""

    BUSY = "busy", _("Busy")
    PARKED = "parked", _("Loaded, quiet")
    IDLE = "idle", _("Idle")
    GHOST = "ghost", _("Ghost memory")
    CANNOT_TELL = "cannot_tell", _("Cannot tell")
    NO_DATA = "no_data", _("No data")
    MISSING = "missing", _("Missing")
    LOST = "lost", _("Lost")


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What is known of a card beside its readings. processes: how many are seen; None when they are not visible."""

    state: str
    memory_total_bytes: int | None
    processes: int | None
    is_fresh: bool


def fresh_seconds(interval_seconds: float) -> float:
    """Return how old a reading may be before it is stale: three intervals, and never less than a quarter minute."""
    return max(FRESH_INTERVALS * interval_seconds, LEAST_FRESH_SECONDS)


def is_fresh(at: datetime | None, *, now: datetime, interval_seconds: float) -> bool:
    """Say whether a reading still tells of the present."""
    return at is not None and (now - at).total_seconds() <= fresh_seconds(interval_seconds)


def gpu_activity(facts: CardFacts, values: Mapping[str, float | None]) -> Activity:
    """Return what the card is doing. values: readings by the names of the metric catalogue, None or absent if missing."""
    if facts.state == GpuState.MISSING:
        return Activity.MISSING
    if facts.state == GpuState.LOST:
        return Activity.LOST
    if not facts.is_fresh or facts.state == GpuState.UNKNOWN:
        return Activity.NO_DATA
    work = [value for name in WORK_METRICS if (value := values.get(name)) is not None]
    if any(value >= BUSY_FROM_PERCENT for value in work) or any((values.get(name) or 0) > 0 for name in ENGINE_METRICS):
        return Activity.BUSY
    if not work:
        return Activity.CANNOT_TELL
    return _quiet(facts, values.get("memory_used_bytes"))


def _quiet(facts: CardFacts, memory_used_bytes: float | None) -> Activity:
    share = memory_share(memory_used_bytes, facts.memory_total_bytes)
    if facts.processes:
        return Activity.PARKED
    if share is None:
        return Activity.IDLE if facts.processes == 0 else Activity.CANNOT_TELL
    if share < HELD_FROM_SHARE:
        return Activity.IDLE
    return Activity.GHOST if facts.processes == 0 else Activity.PARKED


def memory_share(used_bytes: float | None, total_bytes: int | None) -> float | None:
    """Return used memory as a share of the card's own (0 to 1), None when either is unknown."""
    if used_bytes is None or not total_bytes:
        return None
    return used_bytes / total_bytes


def is_throttled(clock_event_reasons: int | None) -> bool:
    """Say whether the card runs slower than it could because of heat or of its power supply."""
    return bool((clock_event_reasons or 0) & THROTTLE_REASONS)


def is_hot(temperature_celsius: float | None, slowdown_celsius: float | None) -> bool:
    """Say whether the card is within a few degrees of slowing itself down (its own threshold; 90 °C without one)."""
    if temperature_celsius is None:
        return False
    limit = slowdown_celsius - HOT_BELOW_SLOWDOWN_CELSIUS if slowdown_celsius else HOT_FROM_CELSIUS
    return temperature_celsius >= limit
