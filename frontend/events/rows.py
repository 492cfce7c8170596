"""Rows of the stream as the page and the CSV show them."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.urls import reverse

from frontend.events.stream import Entry, cursor_of
from frontend.status import tone_of
from frontend.words import audit_sentence, event_sentence
from panel.core.enums import Severity
from panel.core.models import Event

# Kind of object → the name of its page.
_PAGES: Final = {
    "server": "server",
    "gpu": "gpu",
    "lease": "lease",
    "account": "provider",
    "provideraccount": "provider",
    "operation": "operation",
    "endpoint": "endpoint",
    "probe": "probe",
    "channel": "channel",
    "episode": "alert",
    "rule": "rule",
    "notification": "notification",
    "diagnosisreport": "diagnosis",
}
VALUE_SHOWN: Final = 300  # characters of one value


@dataclass(frozen=True, slots=True)
class Change:
    """One key that an action changed; None where it was not there."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line. kind: the event's kind or the audit's action. tone: of the mark. object_href: empty without a page."""

    cursor: str
    at: datetime
    source: str
    kind: str
    severity: str
    severity_word: str
    tone: str
    sentence: str
    object_kind: str
    object_name: str
    object_href: str
    actor: str = ""
    actor_kind: str = ""
    address: str = ""
    reason: str = ""
    changes: list[Change] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Say whether there was nothing before, so that the changes are facts."""
        return all(change.before is None for change in self.changes)


def object_href(kind: str, pk: int | None, *, sees_users: bool) -> str:
    """Return the page of an object, or an empty text when it has none, or none for this viewer."""
    if pk is None:
        return ""
    if kind in _PAGES:
        return reverse(_PAGES[kind], args=[pk])
    if kind == "user" and sees_users:
        return reverse("settings-user", args=[pk])
    return ""


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…"


def changes_of(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[Change]:
    """Return the keys that differ, in order of name."""
    old, new = before or {}, after or {}
    return [
        Change(key, _text(old[key]) if key in old else None, _text(new[key]) if key in new else None)
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) or (key in old) != (key in new)
    ]


def row_of(entry: Entry, *, sees_users: bool) -> Row:
    """Return the row of an event or an audit entry."""
    if isinstance(entry, Event):
        severity = Severity(entry.severity)
        return Row(
            cursor=str(cursor_of(entry)),
            at=entry.at,
            source="event",
            kind=entry.kind,
            severity=severity.value,
            severity_word=str(severity.label),
            tone=tone_of(severity.value),
            sentence=event_sentence(entry.kind, entry.data),
            object_kind=entry.subject_kind,
            object_name=entry.subject_name,
            object_href=object_href(entry.subject_kind, entry.subject_id, sees_users=sees_users),
            actor=str(entry.data.get("asked_by") or ""),
            changes=changes_of(None, entry.data),
        )
    return Row(
        cursor=str(cursor_of(entry)),
        at=entry.at,
        source="audit",
        kind=entry.action,
        severity="",
        severity_word="",
        tone="",
        sentence=audit_sentence(entry.action),
        object_kind=entry.target_kind,
        object_name=entry.target_name,
        object_href=object_href(entry.target_kind, entry.target_id, sees_users=sees_users),
        actor=entry.actor_name,
        actor_kind=entry.actor_kind,
        address=entry.address or "",
        reason=entry.reason,
        changes=changes_of(entry.before, entry.after),
    )
