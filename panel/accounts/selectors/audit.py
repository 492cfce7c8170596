"""Reads of the audit trail and of events."""

from datetime import datetime

from django.db.models import Q, QuerySet

from panel.accounts.models import AuditEntry
from panel.core.models import Event


def audit_list(
    *,
    actor: str = "",
    actor_kind: str = "",
    action: str = "",
    target_kind: str = "",
    target_id: int | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    search: str = "",
) -> QuerySet[AuditEntry]:
    """Return entries, newest first. actor: part of a name; action: whole, or a family with its dot (`auth.`)."""
    rows = AuditEntry.objects.order_by("-at", "-id")
    if actor:
        rows = rows.filter(actor_name__icontains=actor)
    if actor_kind:
        rows = rows.filter(actor_kind=actor_kind)
    if action:
        rows = rows.filter(action__startswith=action) if action.endswith(".") else rows.filter(action=action)
    if target_kind:
        rows = rows.filter(target_kind=target_kind)
    if target_id is not None:
        rows = rows.filter(target_id=target_id)
    if start is not None:
        rows = rows.filter(at__gte=start)
    if end is not None:
        rows = rows.filter(at__lt=end)
    if search:
        rows = rows.filter(
            Q(actor_name__icontains=search) | Q(target_name__icontains=search) | Q(action__icontains=search)
        )
    return rows


def event_list(
    *,
    kind: str = "",
    severity: str = "",
    subject_kind: str = "",
    subject_id: int | None = None,
    server_id: int | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    search: str = "",
) -> QuerySet[Event]:
    """Return events, newest first. kind: whole, or a family with its dot (`gpu.`)."""
    rows = Event.objects.order_by("-at", "-id")
    exact = {"severity": severity, "subject_kind": subject_kind, "subject_id": subject_id, "server_id": server_id}
    rows = rows.filter(**{name: value for name, value in exact.items() if value not in ("", None)})
    if kind:
        rows = rows.filter(kind__startswith=kind) if kind.endswith(".") else rows.filter(kind=kind)
    if start is not None:
        rows = rows.filter(at__gte=start)
    if end is not None:
        rows = rows.filter(at__lt=end)
    if search:
        rows = rows.filter(Q(subject_name__icontains=search) | Q(kind__icontains=search))
    return rows
