"""One incident of a subject and a family of rules: what people are told of it, and when they are told nothing.

What fires is one thing, what people believe is another: `is_told` says whether the last that they heard was that it fires.
Whoever heard that it fires hears that it is over, whatever is silenced then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from panel.core.enums import Severity

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
ORDER: Final = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)


class Kind(StrEnum):
    """What is told."""

    OPENING = "opening"
    UPDATE = "update"
    REMINDER = "reminder"
    RESOLVED = "resolved"
    FLAPPING = "flapping"


@dataclass(frozen=True, slots=True)
class Policy:
    """How much is told.

    reopen_seconds: firing again within it is the same incident, and silent; is_worse_told: unless it is worse than what was
    told. flap_reopens of them within flap_window_seconds are said once, then nothing until it stood still for
    stable_seconds. cap: messages of one key in a day; the end that is owed comes anyway. reminders: first after so many
    seconds by severity, each later by `growth`, longest_reminder_seconds apart at most.
    """

    reopen_seconds: float = 2 * HOUR
    flap_reopens: int = 3
    flap_window_seconds: float = DAY
    stable_seconds: float = 4 * HOUR
    cap: int = 4
    cap_window_seconds: float = DAY
    reminders: tuple[tuple[Severity, float], ...] = ((Severity.CRITICAL, 4 * HOUR), (Severity.WARNING, DAY))
    growth: float = 1.5
    is_worse_told: bool = True
    longest_reminder_seconds: float = DAY

    def first_reminder(self, severity: Severity) -> float | None:
        """Return after how long people are reminded; None: never."""
        return dict(self.reminders).get(severity)


DEFAULT: Final = Policy()
# The two P99 rules watch one thing at two speeds: that the fast one follows the slow one is no news within the silence.
LATENCY: Final = Policy(is_worse_told=False)


@dataclass(frozen=True, slots=True)
class Incident:
    """opened_at: when it first fired; changed_at: when it last began or ceased to fire. told_severity: the worst that was told of
    it: what is worse is never silent.

    reopens: when it fired again, of the last day. sent: when messages went out, of the last day. reminded_at,
    reminder_seconds: when people last heard that it fires, and how long until the next reminder. is_over: closed for good.
    """

    opened_at: float
    changed_at: float
    severity: Severity
    is_firing: bool = True
    is_told: bool = False
    told_severity: Severity | None = None
    reopens: tuple[float, ...] = ()
    is_flapping: bool = False
    sent: tuple[float, ...] = ()
    reminded_at: float | None = None
    reminder_seconds: float | None = None
    is_silent_reopen: bool = False
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What the rules say now. severity: of the worst rule that fires, None: none does. is_frozen: they cannot tell.

    is_muted: nobody is told (silence, maintenance, inhibition). is_acknowledged: somebody takes care: no reminders.
    """

    severity: Severity | None
    is_frozen: bool = False
    is_muted: bool = False
    is_acknowledged: bool = False


def incident_open(severity: Severity, *, now: float, sent: Sequence[float] = ()) -> Incident:
    """Return a new incident. sent: messages of the same key within the last day, for the cap."""
    return Incident(opened_at=now, changed_at=now, severity=severity, sent=tuple(sent))


def incident_step(
    incident: Incident, seen: Seen, *, now: float, policy: Policy = DEFAULT
) -> tuple[Incident, list[Kind]]:
    """Return the incident after one look, and what is told: at most one message of it at a time."""
    incident = _forgotten(incident, now, policy)
    if not seen.is_frozen:
        incident = _moved(incident, seen.severity, now, policy)
    if incident.is_flapping:
        return _flapping(incident, seen, now, policy)
    if not incident.is_firing:
        return _quiet(incident, now, policy)
    return _told(incident, seen, now, policy)


def _forgotten(incident: Incident, now: float, policy: Policy) -> Incident:
    """Drop what is older than the windows; almost always there is nothing to drop."""
    if incident.reopens and incident.reopens[0] <= now - policy.flap_window_seconds:
        kept = tuple(each for each in incident.reopens if each > now - policy.flap_window_seconds)
        incident = replace(incident, reopens=kept)
    if incident.sent and incident.sent[0] <= now - policy.cap_window_seconds:
        incident = replace(
            incident, sent=tuple(each for each in incident.sent if each > now - policy.cap_window_seconds)
        )
    return incident


def _moved(incident: Incident, severity: Severity | None, now: float, policy: Policy) -> Incident:
    """Take in whether it fires; firing again is a re-open, and the third within a day makes it flap."""
    if severity is None:
        return replace(incident, is_firing=False, changed_at=now) if incident.is_firing else incident
    if incident.is_firing:
        return incident if incident.severity == severity else replace(incident, severity=severity)
    reopens = (*incident.reopens, now)
    return replace(
        incident,
        is_firing=True,
        changed_at=now,
        severity=severity,
        reopens=reopens,
        is_silent_reopen=not incident.is_told,
        is_flapping=incident.is_flapping or len(reopens) >= policy.flap_reopens,
    )


def _flapping(incident: Incident, seen: Seen, now: float, policy: Policy) -> tuple[Incident, list[Kind]]:
    """Say once that it flaps, then nothing until it stood still."""
    if now - incident.changed_at >= policy.stable_seconds and not seen.is_frozen:
        calm = replace(incident, is_flapping=False, reopens=())
        return _told(calm, seen, now, policy) if calm.is_firing else _quiet(calm, now, policy)
    if seen.is_muted or not incident.is_firing or _is_capped(incident, policy):
        return incident, []
    if not incident.is_told:
        return _sent(incident, Kind.FLAPPING, now, policy)
    return _sent(incident, Kind.UPDATE, now, policy) if _is_worse(incident) else (incident, [])


def _quiet(incident: Incident, now: float, policy: Policy) -> tuple[Incident, list[Kind]]:
    """It does not fire: whoever heard of it hears the end at once; it is closed when it can not be silently opened again."""
    kinds: list[Kind] = []
    if incident.is_told:
        kinds = [Kind.RESOLVED]
        incident = replace(incident, is_told=False, reminded_at=None, reminder_seconds=None, sent=(*incident.sent, now))
    is_over = now - incident.changed_at >= policy.reopen_seconds
    return (replace(incident, is_over=True) if is_over else incident), kinds


def _told(incident: Incident, seen: Seen, now: float, policy: Policy) -> tuple[Incident, list[Kind]]:
    """It fires: open, raise or remind."""
    if seen.is_muted or _is_capped(incident, policy):
        return incident, []
    if not incident.is_told:
        if incident.is_silent_reopen and not _breaks_silence(incident, now, policy):
            return incident, []
        return _sent(incident, Kind.OPENING, now, policy)
    if _is_worse(incident):
        return _sent(incident, Kind.UPDATE, now, policy)
    if seen.is_acknowledged or seen.is_frozen or not _is_reminder_due(incident, now):
        return incident, []
    return _sent(incident, Kind.REMINDER, now, policy)


def _is_capped(incident: Incident, policy: Policy) -> bool:
    return len(incident.sent) >= policy.cap


def _is_worse(incident: Incident) -> bool:
    told = incident.told_severity
    return told is not None and ORDER.index(incident.severity) > ORDER.index(told)


def _breaks_silence(incident: Incident, now: float, policy: Policy) -> bool:
    """Say whether a silent re-open must be told after all: it is worse, or lasts as long as would be worth a reminder."""
    if policy.is_worse_told and _is_worse(incident):
        return True
    first = policy.first_reminder(incident.severity)
    return first is not None and now - incident.changed_at >= first


def _is_reminder_due(incident: Incident, now: float) -> bool:
    return (
        incident.reminded_at is not None
        and incident.reminder_seconds is not None
        and now - incident.reminded_at >= incident.reminder_seconds
    )


def _sent(incident: Incident, kind: Kind, now: float, policy: Policy) -> tuple[Incident, list[Kind]]:
    wait = policy.first_reminder(incident.severity)
    if kind == Kind.REMINDER and incident.reminder_seconds is not None:
        wait = min(incident.reminder_seconds * policy.growth, policy.longest_reminder_seconds)
    sent = replace(
        incident,
        is_told=True,
        told_severity=incident.severity
        if _is_worse(incident) or not incident.told_severity
        else incident.told_severity,
        sent=(*incident.sent, now),
        reminded_at=now,
        reminder_seconds=wait,
    )
    return sent, [kind]
