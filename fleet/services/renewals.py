"""Reminders of paid terms that end: one event for each term, so many days before as the contract says."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from fleet.models import Lease
from panel.core.enums import Severity
from panel.core.events import event_write


def renewals_remind(*, at: datetime) -> int:
    """Write an event for every open lease whose term ends within its reminder days and was not told of; return how many.

    A term that renews itself is told of too: that is the day until which it can be ended.
    """
    soon = Lease.objects.filter(ended_at=None, renews_at__gt=at).filter(
        Q(reminded_for=None) | ~Q(reminded_for=F("renews_at"))
    )
    told = 0
    for lease in soon.order_by("renews_at"):
        assert lease.renews_at is not None  # noqa: S101 (asked for above)
        if lease.renews_at - at > timedelta(days=lease.reminder_days):
            continue
        with transaction.atomic():
            # Compared and swapped, so that two workers tell once.
            told_now = Lease.objects.filter(pk=lease.pk, reminded_for=lease.reminded_for).update(
                reminded_for=lease.renews_at
            )
            if told_now:
                _tell(lease)
                told += 1
    return told


def _tell(lease: Lease) -> None:
    assert lease.renews_at is not None  # noqa: S101 (asked by the caller)
    event_write(
        kind="lease.renews_soon",
        severity=Severity.INFO if lease.is_renewing else Severity.WARNING,
        subject_kind="lease",
        subject_id=lease.pk,
        subject_name=lease.title,
        server_id=lease.server_id,
        data={"renews_at": lease.renews_at.isoformat(), "is_renewing": lease.is_renewing},
    )
