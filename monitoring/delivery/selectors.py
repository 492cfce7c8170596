"""Reading of the outbox: what waits, what is dead, what a channel did last."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.core.cache import cache
from django.db.models import Count, Min, Q, QuerySet
from redis.exceptions import RedisError

from monitoring.delivery.enums import NoticeKind, NoticeStatus
from monitoring.delivery.models import Channel, Notification

LATE: Final = timedelta(minutes=30)
TROUBLE_KEY: Final = "delivery:trouble"
TROUBLE_SECONDS: Final = 300
log = structlog.get_logger(__name__)


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


def notification_list(
    *,
    status: Sequence[str] = (),
    kind: Sequence[str] = (),
    severity: Sequence[str] = (),
    channel: int | None = None,
    topic: str = "",
    recipient: str = "",
    is_dismissed: bool | None = None,
) -> "QuerySet[Notification]":
    """Return the notifications that pass, the newest first."""
    found = Notification.objects.select_related("channel", "leader", "escalated_from").order_by("-created_at", "-pk")
    for column, values in (("status__in", status), ("kind__in", kind), ("severity__in", severity)):
        if values:
            found = found.filter(**{column: values})
    for column, value in (("channel_id", channel), ("topic", topic), ("recipient__iexact", recipient)):
        if value:
            found = found.filter(**{column: value})
    return found if is_dismissed is None else found.filter(dismissed_at__isnull=not is_dismissed)


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


def trouble_tell(*, at: datetime) -> Trouble:
    """Count, and keep it where every page finds it without asking the database."""
    trouble = delivery_trouble(at=at)
    try:
        cache.set(TROUBLE_KEY, [trouble.dead, trouble.late], timeout=TROUBLE_SECONDS)
    except (RedisError, OSError) as error:
        log.warning("delivery.trouble_not_told", error=str(error))
    return trouble


def trouble_told() -> Trouble:
    """Return what was last counted; none when nobody counted within TROUBLE_SECONDS."""
    try:
        dead, late = cache.get(TROUBLE_KEY) or (0, 0)
    except (RedisError, OSError):
        return Trouble(0, 0)
    return Trouble(dead, late)


def outbox_waiting(*, at: datetime) -> Waiting:
    """Return how much is queued, and the age of what should have gone."""
    rows = Notification.objects.filter(status=NoticeStatus.QUEUED)
    may_go = rows.filter(not_before__lte=at).exclude(kind=NoticeKind.TEST)
    return Waiting(rows.count(), may_go.aggregate(oldest=Min("not_before"))["oldest"])
