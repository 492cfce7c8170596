"""Reading of the outbox: what waits, what is dead, what a channel did last."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Min, Q, QuerySet

from monitoring.delivery.enums import NoticeKind, NoticeStatus
from monitoring.delivery.models import Channel, Notification

LATE: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What people must hear of: messages that nobody dismissed and that could not be delivered, and those that are late."""

    dead: int
    late: int

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.dead or self.late)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is queued. oldest_at: since when the oldest of those could have gone that was tried or may go now."""

    queued: int
    oldest_at: datetime | None


def notification_list() -> "QuerySet[Notification]":
    """Return every notification, the newest first."""
    return Notification.objects.select_related("channel", "leader", "escalated_from").order_by("-created_at", "-pk")


def channel_list() -> "QuerySet[Channel]":
    """Return every channel by name, with how much is queued, and dead of what nobody dismissed."""
    queued = Count("notifications", filter=Q(notifications__status=NoticeStatus.QUEUED))
    dead = Count(
        "notifications", filter=Q(notifications__status=NoticeStatus.DEAD, notifications__dismissed_at__isnull=True)
    )
    return Channel.objects.select_related("fallback").annotate(queued_count=queued, dead_count=dead).order_by("name")


def delivery_trouble(*, at: datetime) -> Trouble:
    """Return how much is undeliverable or late; two small index reads, for every page."""
    dead = Notification.objects.filter(status=NoticeStatus.DEAD, dismissed_at=None, leader=None).count()
    late = Notification.objects.filter(
        status=NoticeStatus.QUEUED, channel__isnull=False, first_try_at__lte=at - LATE, leader=None
    ).count()
    return Trouble(dead, late)


def outbox_waiting(*, at: datetime) -> Waiting:
    """Return how much is queued, and the age of what should have gone."""
    rows = Notification.objects.filter(status=NoticeStatus.QUEUED)
    may_go = rows.filter(not_before__lte=at).exclude(kind=NoticeKind.TEST)
    return Waiting(rows.count(), may_go.aggregate(oldest=Min("not_before"))["oldest"])
