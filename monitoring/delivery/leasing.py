"""Leases on the outbox: one transaction picks what goes out next on a channel, under row locks that nobody waits for."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q, QuerySet

from monitoring.delivery.enums import AttemptOutcome, ChannelKind, NoticeKind, NoticeStatus
from monitoring.delivery.models import Channel, Notification, NotificationAttempt
from monitoring.delivery.parcels import DAY, STORM, Opening, Parcel, Past, decide
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.phrases import stored
from monitoring.notifiers.registry import windows_of

LEASE: Final = timedelta(seconds=60)
MOST_ROWS: Final = 500


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to send one parcel until LEASE is over."""

    token: UUID
    channel: Channel
    recipient: str
    parcel: Parcel
    attempt_id: int
    root_id: str

    @property
    def leader(self) -> Notification:
        """The row that stands for the message."""
        return self.parcel.rows[0]


def due(at: datetime) -> Q:
    """Return the condition of a row that may be sent now, as far as itself is concerned."""
    return (
        Q(status=NoticeStatus.QUEUED, not_before__lte=at)
        & (Q(retry_at=None) | Q(retry_at__lte=at))
        & (Q(claim=None) | Q(claimed_until__lte=at))
    )


def channels_due(*, at: datetime) -> list[int]:
    """Return the channels that have something to send."""
    found = Notification.objects.filter(due(at), channel__is_enabled=True).values_list("channel_id", flat=True)
    return sorted({channel_id for channel_id in found.distinct() if channel_id is not None})


def lease_next(channel_id: int, *, at: datetime, only: int | None = None) -> Lease | None:
    """Lease what goes out next on a channel; None when nothing does, or while another process picks.

    The attempt is stored before it begins: of one that is never heard of again, nobody can say whether it arrived. only: lease
    this notification alone, a test.
    """
    with transaction.atomic():
        channel = Channel.objects.select_for_update(skip_locked=only is None).filter(pk=channel_id).first()
        if channel is None or (not channel.is_enabled and only is None):
            return None
        if only is None and not _has_room(channel, at):
            return None
        for recipient in _recipients_due(channel_id, at, only):
            lease = _lease_for(channel, recipient, at, only)
            if lease is not None:
                return lease
    return None


def _has_room(channel: Channel, at: datetime) -> bool:
    """Say whether the channel's windows let another message through."""
    attempts = NotificationAttempt.objects.filter(channel=channel)
    return all(
        attempts.filter(started_at__gt=at - timedelta(seconds=window.seconds)).count() < window.count
        for window in windows_of(channel.kind)
    )


def _recipients_due(channel_id: int, at: datetime, only: int | None) -> list[str]:
    rows = Notification.objects.filter(due(at), channel_id=channel_id)
    if only is not None:
        rows = rows.filter(pk=only)
    oldest_first: dict[str, None] = dict.fromkeys(rows.order_by("not_before", "pk").values_list("recipient", flat=True))
    return list(oldest_first)


def _lease_for(channel: Channel, recipient: str, at: datetime, only: int | None) -> Lease | None:
    queued = Notification.objects.filter(channel=channel, recipient=recipient, status=NoticeStatus.QUEUED)
    if only is not None:
        queued = queued.filter(pk=only)
    rows = list(queued.select_for_update(skip_locked=True, of=("self",)).order_by("pk")[:MOST_ROWS])
    # Where another process holds a row of a topic, the whole topic waits for it.
    elsewhere = set(queued.exclude(pk__in=[row.pk for row in rows]).values_list("topic", flat=True))
    rows = [row for row in rows if row.topic not in elsewhere]
    past = _past(channel, recipient, rows, at)
    decision = decide(rows, past, at=at, is_for_people=channel.kind != ChannelKind.WEBHOOK)
    for group, until, held_for in decision.held:
        _rows(group).update(not_before=until, held_for=held_for)
    if decision.unowed:
        _rows(decision.unowed).update(
            status=NoticeStatus.WITHHELD, reason=stored(_("An end of which no beginning was told to this recipient."))
        )
    if decision.parcel is None:
        return None
    return _claimed(channel, recipient, decision.parcel, past, at)


def _rows(rows: Iterable[Notification]) -> "QuerySet[Notification]":
    return Notification.objects.filter(pk__in=[row.pk for row in rows])


def _past(channel: Channel, recipient: str, rows: list[Notification], at: datetime) -> Past:
    told = Notification.objects.filter(channel=channel, recipient=recipient, status=NoticeStatus.DELIVERED)
    openings: dict[str, Opening] = {}
    for row in told.filter(topic__in={row.topic for row in rows}).order_by("topic", "seq"):
        first = openings.get(row.topic, Opening(row.facts, row.severity, row.message_id))
        openings[row.topic] = replace(first, is_over=row.kind == NoticeKind.RESOLVED)
    counted = told.exclude(kind__in=(NoticeKind.TEST, NoticeKind.DIGEST))
    capped: dict[str, dict[str, datetime]] = {}
    for key, message_id, when in counted.filter(
        cap_key__in={row.cap_key for row in rows}, delivered_at__gt=at - DAY
    ).values_list("cap_key", "message_id", "delivered_at"):
        if when is not None:
            capped.setdefault(key, {})[message_id] = when
    sent = dict(counted.filter(delivered_at__gt=at - STORM).values_list("message_id", "delivered_at"))
    return Past(
        openings=openings,
        capped={key: sorted(times.values()) for key, times in capped.items()},
        sent=sorted(when for when in sent.values() if when is not None),
    )


def _claimed(channel: Channel, recipient: str, parcel: Parcel, past: Past, at: datetime) -> Lease:
    token, rows = uuid4(), parcel.rows
    leader = rows[0]
    NotificationAttempt.objects.filter(notification=leader, outcome=AttemptOutcome.BEGUN).update(
        outcome=AttemptOutcome.INTERRUPTED,
        sentence=stored(_("Nothing was heard of it again; it is sent again with the same id.")),
    )
    for row in rows:
        row.claim, row.claimed_until, row.is_uncertain = token, at + LEASE, True
        row.attempt_count += 1
        row.first_try_at = row.first_try_at or at
        row.leader_id = None if row is leader else leader.pk
    Notification.objects.bulk_update(
        rows, ["claim", "claimed_until", "is_uncertain", "attempt_count", "first_try_at", "leader_id"]
    )
    attempt = NotificationAttempt.objects.create(notification=leader, channel=channel, started_at=at)
    parts = parcel.parts
    opening = past.openings.get(parts[0].topic) if len(parts) == 1 else None
    return Lease(token, channel, recipient, parcel, attempt.pk, opening.message_id if opening else "")
