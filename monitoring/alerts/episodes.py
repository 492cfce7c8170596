"""Episodes of one round: what fires becomes incidents, incidents become rows, timeline, events and announcements."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import F

from monitoring.alerts.announcing import episode_announce
from monitoring.alerts.definitions import Definition
from monitoring.alerts.enums import EntryKind, Family, Mute
from monitoring.alerts.facts import episode_facts, episode_live
from monitoring.alerts.incident import (
    DEFAULT,
    LATENCY,
    ORDER,
    Incident,
    Kind,
    Policy,
    Seen,
    incident_open,
    incident_step,
)
from monitoring.alerts.models import Episode, EpisodeEntry, Silence
from monitoring.alerts.muting import LOUD, FamilyKey, Muted, Silences, muted, source_of
from monitoring.alerts.packing import incident_pack, incident_read
from monitoring.alerts.subjects import Subject, Subjects
from panel.core.enums import Severity
from panel.core.events import event_write
from panel.core.live import publish_later

TOPIC: Final = "alerts"
DAY: Final = timedelta(days=1)
MOST_LINES: Final = 8


@dataclass(slots=True)
class Firing:
    """What fires of one family on one subject. is_silent: all of it can not be judged at the moment."""

    rules: list[str] = field(default_factory=list)
    severity: Severity = Severity.INFO
    evidence: dict[str, Any] = field(default_factory=dict)
    is_silent: bool = True
    is_evidence: bool = True
    is_digest: bool = True

    def add(
        self, rule: str, definition: Definition, severity: Severity, evidence: dict[str, Any], *, is_silent: bool
    ) -> None:
        """Add one rule that fires."""
        self.rules.append(rule)
        self.severity = max(self.severity, severity, key=ORDER.index)
        self.evidence[rule] = evidence
        self.is_silent = self.is_silent and is_silent
        self.is_evidence = self.is_evidence and definition.is_evidence
        self.is_digest = self.is_digest and definition.is_digest


class EpisodeRound:
    """Turns what fires into episodes."""

    def __init__(self, at: datetime, subjects: Subjects, silences: Silences) -> None:
        self.at, self.now = at, at.timestamp()
        self.subjects, self.silences = subjects, silences
        self.told = 0

    def run(self, firing: Mapping[FamilyKey, Firing]) -> int:
        """Step every episode that is open or begins; returns how many announcements were made."""
        incidents = {key: each for key, each in firing.items() if not each.is_evidence}
        open_ = {
            (each.family, each.subject_kind, each.subject_id): each for each in Episode.objects.filter(closed_at=None)
        }
        self._explain(incidents, open_, firing)
        severities = {key: each.severity for key, each in incidents.items()}
        sent = self._sent_before([key for key in incidents if key not in open_])
        for key in sorted(set(incidents) | set(open_)):
            self._step(key, incidents.get(key), severities, open_, sent.get(key, ()))
        return self.told

    def _explain(
        self,
        incidents: dict[FamilyKey, Firing],
        open_: Mapping[FamilyKey, Episode],
        firing: Mapping[FamilyKey, Firing],
    ) -> None:
        """Give incidents what explains them: cards and queues to latency, endpoints that went down with it to a silent host."""
        severities = {key: each.severity for key, each in incidents.items()}
        for key, found in firing.items():
            subject = self.subjects.get((key[1], key[2]))
            if subject is None:
                continue
            latency = incidents.get((str(Family.LATENCY), "endpoint", subject.endpoint or 0))
            if latency is not None and key[0] in {Family.LOAD, Family.HEAT, Family.MEMORY}:
                lines = latency.evidence.setdefault("lines", [])
                if len(lines) < MOST_LINES:
                    lines.append(
                        {"rule": found.rules[0], "subject": subject.name, "figures": found.evidence[found.rules[0]]}
                    )
            source = source_of(key[0], subject, severities) if key[0] == Family.AVAILABILITY else None
            told = open_.get(key)
            if source is not None and source[0] == Family.AGENT and not (told is not None and told.is_told):
                host = incidents[source]
                host.severity = max(host.severity, found.severity, key=ORDER.index)
                host.evidence.setdefault("endpoints", []).append(subject.name)

    def _sent_before(self, keys: list[FamilyKey]) -> dict[FamilyKey, tuple[float, ...]]:
        """Return when messages of the same keys went out within a day, of episodes that are closed: the cap is of the key."""
        if not keys:
            return {}
        recent = Episode.objects.filter(
            closed_at__gt=self.at - DAY, family__in={key[0] for key in keys}, subject_id__in={key[2] for key in keys}
        )
        found: dict[FamilyKey, tuple[float, ...]] = {}
        for row in recent.order_by("opened_at"):
            found[row.family, row.subject_kind, row.subject_id] = incident_read(row.incident).sent
        return found

    def _step(
        self,
        key: FamilyKey,
        found: Firing | None,
        severities: Mapping[FamilyKey, Severity],
        open_: Mapping[FamilyKey, Episode],
        sent: tuple[float, ...],
    ) -> None:
        episode = open_.get(key)
        subject = self.subjects.get((key[1], key[2]))
        if found is not None and subject is None:
            found = None
        if episode is None and found is None:
            return
        before = incident_read(episode.incident) if episode is not None else None
        incident = before or incident_open(found.severity if found else Severity.INFO, now=self.now, sent=sent)
        mute = self._muted(key, subject, found, episode, severities)
        is_acknowledged = episode is not None and (episode.acknowledged_until or self.at) > self.at
        seen = Seen(
            found.severity if found else None,
            is_frozen=found is not None and found.is_silent,
            is_muted=mute.by != Mute.NONE,
            is_acknowledged=is_acknowledged,
        )
        after, kinds = incident_step(incident, seen, now=self.now, policy=_policy(key[0]))
        if episode is None:
            episode = self._begun(key, subject, after)
        _Writer(self.at, episode, before, after, found=found, mute=mute).write(kinds, open_)
        self.told += len(kinds)

    def _muted(
        self,
        key: FamilyKey,
        subject: Subject | None,
        found: Firing | None,
        episode: Episode | None,
        severities: Mapping[FamilyKey, Severity],
    ) -> Muted:
        if subject is None or (found is None and episode is None):
            return LOUD
        rules = found.rules if found is not None else list(episode.rules if episode else [])
        severity = found.severity if found is not None else Severity(episode.severity if episode else Severity.INFO)
        evidence = found.evidence if found is not None else {}
        places = evidence.get("no_data", {}).get("places", ()) if key[0] == Family.DATA else ()
        return muted(
            key[0], subject, rules=rules, severity=severity, silences=self.silences, firing=severities, places=places
        )

    def _begun(self, key: FamilyKey, subject: Subject | None, incident: Incident) -> Episode:
        return Episode(
            family=key[0],
            subject_kind=key[1],
            subject_id=key[2],
            subject_name=(subject.name if subject else "")[:200],
            host_id=subject.host_id if subject else None,
            severity=incident.severity,
            opened_at=self.at,
            changed_at=self.at,
            incident=incident_pack(incident),
        )


def _policy(family: str) -> Policy:
    return LATENCY if family == Family.LATENCY else DEFAULT


class _Writer:
    """Writes what changed of one episode."""

    def __init__(
        self,
        at: datetime,
        episode: Episode,
        before: Incident | None,
        after: Incident,
        *,
        found: Firing | None,
        mute: Muted,
    ) -> None:
        self.at, self.episode, self.before, self.after = at, episode, before, after
        self.found, self.mute = found, mute
        self.entries: list[EpisodeEntry] = []

    def write(self, kinds: list[Kind], open_: Mapping[FamilyKey, Episode]) -> None:
        episode = self.episode
        is_new = episode.pk is None
        changed = self._take_in(open_)
        if is_new:
            episode.save(force_insert=True)
        self._note()
        for kind in kinds:
            self._tell(kind)
        if kinds or (not is_new and (changed or self.entries)):
            episode.version += 1 if self.entries else 0
            episode.save(update_fields=_WRITTEN)
        for entry in self.entries:
            entry.episode = episode
        EpisodeEntry.objects.bulk_create(self.entries)
        if is_new or self.entries:
            publish_later(TOPIC, {"episodes": {str(episode.pk): episode_live(episode)}})

    def _take_in(self, open_: Mapping[FamilyKey, Episode]) -> bool:
        """Set the row's columns; returns whether anything differs from what is stored."""
        episode, after = self.episode, self.after
        was = {name: getattr(episode, name) for name in _WRITTEN}
        self.was_muted, self.was_frozen = was["muted_by"], was["frozen_since"]
        episode.severity = after.severity
        episode.changed_at = datetime.fromtimestamp(after.changed_at, UTC)
        episode.resolved_at = None if after.is_firing else episode.changed_at
        episode.closed_at = self.at if after.is_over else None
        episode.is_told, episode.is_flapping = after.is_told, after.is_flapping
        episode.incident = incident_pack(after)
        if self.found is not None:
            episode.rules = sorted(self.found.rules)
            # What was seen of a rule that ceased stays: the end of the episode is told with it.
            episode.evidence = {**episode.evidence, **self.found.evidence}
            is_silent = self.found.is_silent
            episode.frozen_since = (episode.frozen_since or self.at) if is_silent else None
        else:
            episode.frozen_since = None
        episode.muted_by = self.mute.by
        source = open_.get(self.mute.source) if self.mute.source is not None else None
        episode.muted_ref = self.mute.silence_id or (source.pk if source is not None else None)
        return any(getattr(episode, name) != value for name, value in was.items())

    def _entry(self, kind: EntryKind, data: dict[str, Any] | None = None) -> None:
        self.entries.append(EpisodeEntry(at=self.at, kind=kind, data=data or {}))

    def _note(self) -> None:
        before, after, episode = self.before, self.after, self.episode
        if before is None or (after.is_firing and not before.is_firing):
            kind = EntryKind.FIRED if before is None else EntryKind.REFIRED
            self._entry(kind, {"rules": episode.rules, "severity": str(after.severity)})
            self._event("alert.fired", after.severity)
        elif before.is_firing and not after.is_firing:
            self._entry(EntryKind.CEASED)
            self._event("alert.resolved", Severity.INFO)
        elif before.severity != after.severity:
            self._entry(EntryKind.SEVERITY, {"before": str(before.severity), "after": str(after.severity)})
        if self.was_muted != self.mute.by and (self.mute.by or before is not None):
            self._mute_entry()
        if bool(self.was_frozen) != bool(episode.frozen_since):
            self._entry(EntryKind.FROZEN if episode.frozen_since else EntryKind.THAWED)
        if after.is_over:
            self._entry(EntryKind.CLOSED)

    def _mute_entry(self) -> None:
        if not self.mute.by:
            self._entry(EntryKind.UNMUTED)
            return
        self._entry(EntryKind.MUTED, {"by": str(self.mute.by), "ref": self.episode.muted_ref})
        if self.mute.silence_id is not None:
            Silence.objects.filter(pk=self.mute.silence_id).update(suppressed=F("suppressed") + 1)

    def _event(self, kind: str, severity: Severity) -> None:
        episode = self.episode
        if self.after.is_flapping:
            return
        event_write(
            kind=kind,
            subject_kind=episode.subject_kind,
            subject_id=episode.subject_id,
            subject_name=episode.subject_name,
            severity=severity,
            server_id=episode.host_id,
            data={"episode": episode.pk, "family": episode.family, "rules": episode.rules},
        )

    def _tell(self, kind: Kind) -> None:
        self.episode.seq += 1
        facts = episode_facts(self.episode, at=self.at)
        if self.found is not None:
            facts["is_digest"] = self.found.is_digest
        recipients = episode_announce(self.episode, str(kind), facts, at=self.at)
        self._entry(EntryKind.TOLD, {"kind": str(kind), "seq": self.episode.seq, "recipients": recipients})


_WRITTEN: Final = (
    "severity", "changed_at", "resolved_at", "closed_at", "is_told", "is_flapping", "incident", "rules", "evidence",
    "frozen_since", "muted_by", "muted_ref", "seq", "version",
)  # fmt: skip
