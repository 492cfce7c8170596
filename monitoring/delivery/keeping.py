"""How long the record of what was told is kept."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, OuterRef, Q

from monitoring.delivery.enums import NoticeKind, NoticeStatus
from monitoring.delivery.models import Notification

KEPT: Final = timedelta(days=90)


def notifications_forget(*, at: datetime) -> int:
    """Remove what ended KEPT ago with its attempts; returns how many rows went. Repeatable.

    The record of a topic that is still open stays: who was told of its beginning is owed its end.
    """
    until = at - KEPT
    ends = Notification.objects.filter(topic=OuterRef("topic"), kind=NoticeKind.RESOLVED, created_at__lt=until)
    alone = Q(kind__in=(NoticeKind.TEST, NoticeKind.DIGEST))
    old = Notification.objects.filter(created_at__lt=until).exclude(status=NoticeStatus.QUEUED)
    ids = list(old.filter(alone | Q(Exists(ends))).values_list("pk", flat=True)[:20_000])
    Notification.objects.filter(pk__in=ids).delete()
    return len(ids)
