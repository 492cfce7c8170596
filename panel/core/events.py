"""Writing of events: what happened to a server, a GPU, an agent. Readers see it live after the commit."""

from typing import Any

from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.live import publish_later
from panel.core.models import Event

TOPIC = "events"


def event_facts(event: Event) -> dict[str, Any]:
    """Return the event as it stands in API answers and live frames; `at` is ISO 8601 with its offset."""
    return {
        "id": event.pk,
        "at": event.at.isoformat(),
        "kind": event.kind,
        "severity": str(event.severity),
        "subject_kind": event.subject_kind,
        "subject_id": event.subject_id,
        "subject_name": event.subject_name,
        "server_id": event.server_id,
        "data": event.data,
    }


def event_write(
    *,
    kind: str,
    subject_kind: str,
    subject_id: int | None,
    subject_name: str,
    severity: Severity = Severity.INFO,
    server_id: int | None = None,
    data: dict[str, Any] | None = None,
) -> Event:
    """Store one event in the caller's transaction and publish it to the `events` topic once that commits.

    kind: dotted, `server.state_changed`. data: JSON-ready facts; never a secret.
    """
    event = Event.objects.create(
        at=now(),
        kind=kind,
        severity=severity,
        subject_kind=subject_kind,
        subject_id=subject_id,
        subject_name=subject_name[:200],
        server_id=server_id,
        data=data or {},
    )
    publish_later(TOPIC, {"events": {str(event.pk): event_facts(event)}})
    return event
