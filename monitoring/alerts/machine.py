"""One rule on one subject: inactive → pending → firing → inactive, with hysteresis in time, frozen while there is no data."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from monitoring.alerts.conditions.reading import Reading
from panel.core.enums import Severity


class Phase(StrEnum):
    """Where a rule stands on a subject."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"


@dataclass(frozen=True, slots=True)
class Holding:
    """for_seconds: how long a breach must last before it fires; clear_seconds: how long it must be over before it ends.

    is_absence_breach: no data counts as a breach (it still never ends anything).
    """

    for_seconds: float = 0.0
    clear_seconds: float = 0.0
    is_absence_breach: bool = False


@dataclass(frozen=True, slots=True)
class RuleState:
    """since: of this phase (pending: of the breach); clear_since: while it fires, since when it is over.

    silent_since: since when there is no data; what waits for time stands still meanwhile.
    """

    phase: Phase = Phase.INACTIVE
    since: float = 0.0
    clear_since: float | None = None
    silent_since: float | None = None
    severity: Severity | None = None


RESTING: Final = RuleState()


def rule_step(state: RuleState, reading: Reading, *, now: float, holding: Holding = Holding()) -> RuleState:
    """Return the state after one look."""
    if not reading.has_data and not (holding.is_absence_breach and state.phase != Phase.FIRING):
        return state if state.silent_since is not None else replace(state, silent_since=now)
    is_breach = reading.is_breach or not reading.has_data
    state = _resumed(state, now)
    if state.phase == Phase.FIRING:
        return _firing(state, reading, now, holding)
    if not is_breach:
        return RESTING
    since = state.since if state.phase == Phase.PENDING else now
    if now - since >= holding.for_seconds:
        return RuleState(Phase.FIRING, now, severity=reading.severity)
    return RuleState(Phase.PENDING, since, severity=reading.severity)


def _firing(state: RuleState, reading: Reading, now: float, holding: Holding) -> RuleState:
    if reading.is_breach or not reading.is_clear:
        severity = reading.severity if reading.is_breach and reading.severity else state.severity
        return replace(state, clear_since=None, severity=severity)
    clear_since = state.clear_since if state.clear_since is not None else now
    return RESTING if now - clear_since >= holding.clear_seconds else replace(state, clear_since=clear_since)


def _resumed(state: RuleState, now: float) -> RuleState:
    """Data is back: the time without it counts neither towards firing nor towards the end."""
    if state.silent_since is None:
        return state
    gap = now - state.silent_since
    since = state.since + gap if state.phase == Phase.PENDING else state.since
    clear_since = state.clear_since + gap if state.clear_since is not None else None
    return replace(state, since=since, clear_since=clear_since, silent_since=None)
