"""Why nobody is told of something: silences, maintenance, and what follows from another incident."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from monitoring.alerts.enums import Family, Mute
from monitoring.alerts.models import Silence
from monitoring.alerts.silencing import Window, is_within, matches, occurrence, window_read
from monitoring.alerts.subjects import Key, Subject
from panel.core.enums import Severity

FamilyKey = tuple[str, str, int]  # family, subject kind, subject id


@dataclass(frozen=True, slots=True)
class Muted:
    """by: why; ref: the silence, or the family and subject that it follows from."""

    by: Mute = Mute.NONE
    silence_id: int | None = None
    source: FamilyKey | None = None


LOUD = Muted()


def facts_of(
    family: str, subject: Subject, rules: Iterable[str], severity: Severity | str
) -> dict[str, str | list[str]]:
    """Return what silences match by."""
    return {
        **subject.labels,
        "family": family,
        "rule": list(rules),
        "severity": str(severity),
        "kind": subject.kind,
        "subject": f"{subject.kind}:{subject.id}",
        "server": [str(each) for each in subject.hosts],
    }


class Silences:
    """The silences of one round."""

    def __init__(self, now: datetime, *, since: timedelta = timedelta(0)) -> None:
        self.now = now
        self._since = now - since
        found = Silence.objects.filter(starts_at__lte=now, ends_at__gt=self._since).order_by("pk")
        self._all: list[tuple[Silence, Window | None]] = [(each, window_read(each.window)) for each in found]

    def one(self, facts: Mapping[str, str | list[str]]) -> Silence | None:
        """Return a silence that holds now for something, one of maintenance first."""
        holding = [
            silence
            for silence, window in self._all
            if silence.ends_at > self.now
            and is_within(window, silence.zone, self.now)
            and matches(silence.matchers, facts)
        ]
        return max(holding, key=lambda each: each.is_maintenance, default=None)

    @property
    def maintenances(self) -> list[tuple[Silence, Window | None]]:
        """Return those of maintenance, also those that are over and whose samples still lie in a window."""
        return [(silence, window) for silence, window in self._all if silence.is_maintenance]

    def spans(self, facts: Mapping[str, str | list[str]]) -> list[tuple[float, float]]:
        """Return when, Unix seconds, something was maintained within the time that rules look back."""
        found: list[tuple[float, float]] = []
        for silence, window in self.maintenances:
            if matches(silence.matchers, facts):
                found += _spans(silence, window, self._since, self.now)
        return found


def _spans(silence: Silence, window: Window | None, start: datetime, end: datetime) -> list[tuple[float, float]]:
    first, last = max(silence.starts_at, start), min(silence.ends_at, end + timedelta(days=1))
    if window is None:
        return [(first.timestamp(), last.timestamp())]
    zone = ZoneInfo(silence.zone)
    found = []
    day = first.astimezone(zone) - timedelta(days=1)
    while day <= last.astimezone(zone):
        if day.weekday() in window.days:
            begins, ends = occurrence(window, zone, day)
            found.append((max(begins, first).timestamp(), min(ends, last).timestamp()))
        day += timedelta(days=1)
    return [(begins, ends) for begins, ends in found if ends > begins]


def source_of(family: str, subject: Subject, firing: Mapping[FamilyKey, Severity]) -> FamilyKey | None:
    """Return the incident that this one follows from: place or host ⊃ endpoint down ⊃ errors ⊃ latency ⊃ P95; load and heat
    are lines of an open incident of latency.
    """
    for family_key in _sources(family, subject):
        if family_key in firing:
            return family_key
    hosts = [(str(Family.AGENT), "server", host) for host in subject.hosts]
    follows_host = family != Family.AGENT and not (family == Family.PLACE and subject.id == 0)
    if follows_host and hosts and all(each in firing for each in hosts):
        return hosts[0]
    return None


def _sources(family: str, subject: Subject) -> Sequence[FamilyKey]:
    own = (subject.kind, subject.id)
    if family == Family.LATENCY:
        return [(str(Family.AVAILABILITY), *own)]
    if family == Family.P95:
        return [(str(Family.AVAILABILITY), *own), (str(Family.LATENCY), *own)]
    if family in {Family.LOAD, Family.HEAT, Family.MEMORY} and subject.endpoint is not None:
        return [(str(Family.LATENCY), "endpoint", subject.endpoint)]
    return []


def places_mute(places: Sequence[int], firing: Mapping[FamilyKey, Severity]) -> FamilyKey | None:
    """Return the incident of a place that silence of a subject follows from: all places that look at it are not well."""
    keys = [[(str(Family.PLACE), "place", each), (str(Family.AGENT), "server", each)] for each in places]
    if places and all(any(key in firing for key in pair) for pair in keys):
        return next(key for key in keys[0] if key in firing)
    return None


def muted(
    family: str,
    subject: Subject,
    *,
    rules: Iterable[str],
    severity: Severity,
    silences: Silences,
    firing: Mapping[FamilyKey, Severity],
    places: Sequence[int] = (),
) -> Muted:
    """Return why nobody is told of a family's incident on a subject."""
    if subject.is_maintained:
        return Muted(Mute.MAINTENANCE)
    silence = silences.one(facts_of(family, subject, rules, severity))
    if silence is not None:
        return Muted(Mute.MAINTENANCE if silence.is_maintenance else Mute.SILENCE, silence.pk)
    source = source_of(family, subject, firing)
    if source is None and family == Family.DATA:
        source = places_mute(places, firing)
    return LOUD if source is None else Muted(Mute.INHIBITED, source=source)


def key_text(key: Key) -> str:
    """Return a subject as matchers name it."""
    return f"{key[0]}:{key[1]}"
