"""Threshold rules on the newest value of any series: above, below, absent, changed, share of time over a limit.

Pure: what must be remembered between two looks is `Memory`, which goes in and comes out. Nothing is remembered of a series
that is quiet, so that thousands of quiet ones cost nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from monitoring.alerts.conditions.reading import NO_DATA, QUIET, Reading

# One look stands for the time until the next, but not for longer than this: what was between is not known.
LONGEST_LOOK: Final = 90.0
Span = tuple[float, float]


class Operator(StrEnum):
    """How a value is compared."""

    ABOVE = "above"
    BELOW = "below"
    ABSENT = "absent"
    CHANGED = "changed"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Threshold:
    """limit: in the unit of the series; clear: the level at which it is over (the limit when None).

    share: with `share`, the part of `window_seconds` (0 to 1) that must be above the limit, and the clear level is a share.
    stale_seconds: an older value is none. samples: so many looks with a value before it may fire.
    """

    operator: Operator
    limit: float = 0.0
    clear: float | None = None
    share: float = 0.0
    clear_share: float | None = None
    window_seconds: float = 600.0
    stale_seconds: float = 180.0
    samples: int = 1


@dataclass(frozen=True, slots=True)
class Memory:
    """looks: with a value since it was not quiet; over, seen: spans of time over the limit and with a value; value: the last."""

    looks: int = 0
    over: tuple[Span, ...] = ()
    seen: tuple[Span, ...] = ()
    value: float | None = None
    changed_at: float | None = None


EMPTY: Final = Memory()


def is_over(rule: Threshold, value: float) -> bool:
    """Say whether one value is beyond the limit."""
    return value < rule.limit if rule.operator == Operator.BELOW else value > rule.limit


def _is_back(rule: Threshold, value: float) -> bool:
    level = rule.limit if rule.clear is None else rule.clear
    return value >= level if rule.operator == Operator.BELOW else value <= level


def threshold_reading(
    rule: Threshold, value: float | None, *, at: float | None, now: float, memory: Memory = EMPTY
) -> tuple[Reading, Memory]:
    """Judge the newest value (None: the series has none; `at`: when it was taken) and return what to remember."""
    is_there = value is not None and at is not None and at >= now - rule.stale_seconds
    if rule.operator == Operator.ABSENT:
        return Reading(is_breach=not is_there, is_clear=is_there), EMPTY
    if value is None or not is_there:
        return NO_DATA, memory
    if rule.operator == Operator.CHANGED:
        return _changed(rule, value, now, memory)
    if rule.operator == Operator.SHARE:
        return _share(rule, value, now, memory)
    looks = memory.looks + 1
    reading = Reading(is_breach=is_over(rule, value) and looks >= rule.samples, is_clear=_is_back(rule, value))
    return reading, EMPTY if reading.is_clear else Memory(looks=looks)


def _changed(rule: Threshold, value: float, now: float, memory: Memory) -> tuple[Reading, Memory]:
    """It fires from a change on, until the value stood still for the window."""
    changed_at = memory.changed_at
    if memory.value is not None and value != memory.value:
        changed_at = now
    is_recent = changed_at is not None and now - changed_at < rule.window_seconds
    kept = Memory(value=value, changed_at=changed_at if is_recent else None)
    return Reading(is_breach=is_recent, is_clear=not is_recent), kept


def _share(rule: Threshold, value: float, now: float, memory: Memory) -> tuple[Reading, Memory]:
    over = value > rule.limit
    if not over and not memory.over:
        return QUIET, EMPTY
    start = now - rule.window_seconds
    looked_at = memory.seen[-1][1] if memory.seen else now
    since = looked_at if now - looked_at <= LONGEST_LOOK else now
    kept = Memory(
        looks=memory.looks + 1,
        over=_extended(memory.over, since, now, start) if over else _since(memory.over, start),
        seen=_extended(memory.seen, since, now, start),
    )
    if not kept.over:
        return QUIET, EMPTY
    part = _length(kept.over) / rule.window_seconds
    clear_share = rule.share if rule.clear_share is None else rule.clear_share
    # What was not seen counts neither as over nor as quiet.
    quiet = (_length(kept.seen) - _length(kept.over)) / rule.window_seconds
    reading = Reading(
        is_breach=part >= rule.share and kept.looks >= rule.samples,
        is_clear=quiet >= 1 - clear_share,
    )
    return reading, kept


def _extended(spans: Sequence[Span], since: float, now: float, start: float) -> tuple[Span, ...]:
    """Return the spans with the time from the look before (`since`) to this one."""
    kept = _since(spans, start)
    if kept and kept[-1][1] == since:
        return (*kept[:-1], (kept[-1][0], now))
    return (*kept, (max(since, start), now))


def _since(spans: Sequence[Span], start: float) -> tuple[Span, ...]:
    return tuple((max(first, start), last) for first, last in spans if last > start)


def _length(spans: Sequence[Span]) -> float:
    return sum(last - first for first, last in spans)
