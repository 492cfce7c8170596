"""Reads of alerts: what fires, is pending, is silenced, was; rules with when they last fired; what silences match."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Max, Q, QuerySet

from monitoring.alerts.builtin import BY_KEY
from monitoring.alerts.machine import Phase
from monitoring.alerts.models import Episode, Rule, RuleStanding, Silence
from monitoring.alerts.muting import facts_of
from monitoring.alerts.silencing import is_within, matches, window_read
from monitoring.alerts.subjects import Key, Subject, subjects_load
from monitoring.delivery.models import Notification
from panel.core.enums import Severity

STATES: Final = ("firing", "silenced", "resolved")
WEEK: Final = timedelta(days=7)


def episode_list(
    *, state: str = "", severity: str = "", subject: Key | None = None, family: str = ""
) -> QuerySet[Episode]:
    """Return episodes, the newest first; state: firing (told or to be told), silenced (muted for any reason), resolved."""
    episodes = Episode.objects.all()
    if state == "firing":
        episodes = episodes.filter(resolved_at=None, muted_by="")
    elif state == "silenced":
        episodes = episodes.filter(resolved_at=None).exclude(muted_by="")
    elif state == "resolved":
        episodes = episodes.filter(resolved_at__isnull=False)
    if severity:
        episodes = episodes.filter(severity=severity)
    if family:
        episodes = episodes.filter(family=family)
    if subject is not None:
        episodes = episodes.filter(subject_kind=subject[0], subject_id=subject[1])
    return episodes.order_by("-pk")


def firing_now() -> list[Episode]:
    """Return what fires and is not muted, the worst first, then the newest. One query."""
    rank = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
    rows = list(episode_list(state="firing"))
    return sorted(rows, key=lambda each: (rank[Severity(each.severity)], -each.opened_at.timestamp()))


def firing_counts() -> dict[str, int]:
    """Return how many fire by severity, those that are muted left out."""
    rows = episode_list(state="firing").order_by().values_list("severity").annotate(count=Count("pk"))
    return dict(rows)


@dataclass(frozen=True, slots=True)
class Pending:
    """A breach that has not lasted long enough yet."""

    rule: Rule
    subject: Subject | None
    subject_kind: str
    subject_id: int
    since: datetime
    for_seconds: float
    evidence: Mapping[str, Any]


def pending_list() -> list[Pending]:
    """Return what is pending, the oldest first."""
    from monitoring.alerts.rules import base_of

    rows = list(RuleStanding.objects.filter(phase=Phase.PENDING).select_related("rule").order_by("since")[:500])
    names = names_of((row.subject_kind, row.subject_id) for row in rows)
    return [
        Pending(
            row.rule, names.get((row.subject_kind, row.subject_id)), row.subject_kind, row.subject_id, row.since,
            base_of(row.rule).holding.for_seconds, row.evidence,
        )
        for row in rows
    ]  # fmt: skip


def names_of(keys: Iterable[Key]) -> dict[Key, Subject]:
    """Return subjects by key, those that are gone left out."""
    by_kind: defaultdict[str, set[int]] = defaultdict(set)
    for kind, subject_id in keys:
        by_kind[kind].add(subject_id)
    return {
        (kind, subject_id): subject
        for kind, ids in by_kind.items()
        for subject_id, subject in subjects_load(kind, ids).items()
    }


def deliveries(episodes: Sequence[Episode]) -> dict[int, list[Notification]]:
    """Return what was queued for whom of these episodes, in order. One query."""
    found: defaultdict[int, list[Notification]] = defaultdict(list)
    topics = {f"episode:{episode.pk}": episode.pk for episode in episodes}
    for row in Notification.objects.filter(topic__in=topics).order_by("seq", "channel_name", "recipient"):
        found[topics[row.topic]].append(row)
    return dict(found)


def rule_list() -> QuerySet[Rule]:
    """Return every rule, built-in ones first in their order."""
    return Rule.objects.annotate(differences=Count("overrides")).order_by("-is_builtin", "pk")


def rule_firings(*, at: datetime) -> dict[str, tuple[int, datetime | None]]:
    """Return by rule how many episodes of the last week it was part of, and when the last began."""
    counts: defaultdict[str, int] = defaultdict(int)
    last: dict[str, datetime] = {}
    for rules, opened_at in Episode.objects.filter(opened_at__gt=at - WEEK).values_list("rules", "opened_at"):
        for key in rules:
            counts[key] += 1
            last[key] = max(opened_at, last.get(key, opened_at))
    return {key: (counts[key], last[key]) for key in counts}


def silence_list(*, at: datetime, is_over: bool | None = None) -> QuerySet[Silence]:
    """Return silences, those that end first first; those that are over stay for a week."""
    silences = Silence.objects.all()
    if is_over is not None:
        silences = silences.filter(ends_at__lte=at) if is_over else silences.filter(ends_at__gt=at)
    return silences.order_by("ends_at", "pk")


def silences_long(*, at: datetime) -> int:
    """Return how many silences hide something for more than a week."""
    return Silence.objects.filter(starts_at__lt=at - WEEK, ends_at__gt=at).aggregate(count=Count("pk"))["count"] or 0


def is_active(silence: Silence, *, at: datetime) -> bool:
    """Say whether a silence hides something at this moment."""
    if not silence.starts_at <= at < silence.ends_at:
        return False
    return is_within(window_read(silence.window), silence.zone, at)


@dataclass(frozen=True, slots=True)
class Matched:
    """What a silence would hide: episodes that are open, and subjects that could fire."""

    episodes: list[Episode]
    subjects: list[Subject]
    total_subjects: int


MOST_MATCHED: Final = 50


def matched_by(matchers: Mapping[str, str]) -> Matched:
    """Return what matchers match now. Episodes with their rules and severity; subjects by everything else."""
    from monitoring.alerts.subjects import subject_kinds

    if not matchers:
        return Matched([], [], 0)
    open_ = list(Episode.objects.filter(closed_at=None).order_by("-pk"))
    names = names_of((row.subject_kind, row.subject_id) for row in open_)
    episodes = []
    for row in open_:
        subject = names.get((row.subject_kind, row.subject_id))
        if subject is not None and matches(matchers, facts_of(row.family, subject, row.rules, row.severity)):
            episodes.append(row)
    about = {name: value for name, value in matchers.items() if name not in {"rule", "family", "severity"}}
    subjects = [
        subject
        for kind in subject_kinds()
        for subject in subjects_load(kind, None).values()
        if not about or matches(about, facts_of("", subject, (), ""))
    ]
    return Matched(episodes, subjects[:MOST_MATCHED], len(subjects))


def is_known_matcher(name: str, value: str) -> bool:
    """Say whether a rule or family that is named exists; labels may be anything."""
    if name == "rule":
        return value in BY_KEY or Rule.objects.filter(Q(key=value)).exists()
    return True


def newest_change() -> datetime | None:
    """Return when an episode last changed."""
    changed: datetime | None = Episode.objects.aggregate(newest=Max("changed_at"))["newest"]
    return changed
