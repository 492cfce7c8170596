"""The outbox: what is to be told stands in it from the transaction on that made it true."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from django.db import transaction

from monitoring.delivery.enums import ChannelKind, NoticeStatus
from monitoring.delivery.models import Channel, Notification
from monitoring.delivery.recipients import Recipient, recipients_of
from monitoring.delivery.timing import GROUP_WAIT, quiet_until
from monitoring.notifiers.told import Told, register_teller
from panel.core.enums import Severity

__all__ = ["Announcement", "Told", "announce", "register_teller"]

Kind = Literal["opening", "update", "reminder", "resolved", "flapping", "digest", "test"]
RANK: Final = {str(Severity.INFO): 0, str(Severity.WARNING): 1, str(Severity.CRITICAL): 2}
GROUPED: Final = frozenset({"opening", "update", "reminder", "resolved", "flapping"})


@dataclass(frozen=True, slots=True)
class Announcement:
    """One thing to tell of a topic.

    topic: `episode:<id>`, `waste:<date>`, `test:<n>`; its prefix has a teller. seq: grows within the topic; the order in which
    it is told. host_id: the server that it hangs on; what hangs on one server within a minute is one message. facts: JSON-ready,
    no secrets. cap_key: what at most four messages in 24 h are counted by (a rule and its subject); the topic when empty.
    channel_ids: only these channels; None for all that take this severity and topic.
    """

    topic: str
    seq: int
    kind: Kind
    severity: Literal["info", "warning", "critical"]
    subject_kind: str = ""
    subject_id: int | None = None
    host_id: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    cap_key: str = ""
    channel_ids: tuple[int, ...] | None = None


def announce(announcement: Announcement, *, at: datetime) -> int:
    """Queue it for everybody concerned, in the caller's transaction; returns for how many. Repeating it changes nothing.

    `resolved` goes to exactly those who were told, or are about to be told, of the topic before, and to nobody else.
    """
    with transaction.atomic():
        pairs = _owed(announcement) if announcement.kind == "resolved" else _concerned(announcement)
        rows = [notification_of(announcement, channel, recipient, at=at) for channel, recipient in pairs]
        Notification.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _concerned(announcement: Announcement) -> Iterable[tuple[Channel, Recipient]]:
    prefix = announcement.topic.partition(":")[0]
    channels = Channel.objects.filter(is_enabled=True).order_by("pk")
    if announcement.channel_ids is not None:
        channels = channels.filter(pk__in=announcement.channel_ids)
    for channel in channels:
        if announcement.kind != "test":
            if RANK[announcement.severity] < RANK[channel.min_severity]:
                continue
            if channel.topics and prefix not in channel.topics:
                continue
        for recipient in recipients_of(channel):
            yield channel, recipient


def _owed(announcement: Announcement) -> Iterable[tuple[Channel, Recipient]]:
    told = (
        Notification.objects.filter(topic=announcement.topic, seq__lt=announcement.seq)
        .filter(status__in=(NoticeStatus.QUEUED, NoticeStatus.DELIVERED), channel__isnull=False)
        .values_list("channel_id", "recipient")
        .distinct()
    )
    by_channel: dict[int, list[str]] = {}
    for channel_id, address in told.order_by("channel_id", "recipient"):
        by_channel.setdefault(channel_id, []).append(address)
    channels = Channel.objects.in_bulk(by_channel)
    for channel_id, addresses in by_channel.items():
        known = {each.address: each for each in recipients_of(channels[channel_id])}
        for address in addresses:
            yield channels[channel_id], known.get(address, Recipient(address))


def notification_of(
    announcement: Announcement, channel: Channel, recipient: Recipient, *, at: datetime
) -> Notification:
    """Return the row that tells this recipient, not stored yet, with the time until which it is held back."""
    not_before, held_for = at, ""
    is_for_people = channel.kind != ChannelKind.WEBHOOK  # programs are told at once and of each thing by itself
    if is_for_people and announcement.host_id is not None and announcement.kind in GROUPED:
        not_before, held_for = at + GROUP_WAIT, "group"
    if is_for_people and announcement.severity != "critical" and announcement.kind != "test":
        until = quiet_until(at, start=channel.quiet_start, end=channel.quiet_end, zone=recipient.zone)
        if until is not None and until > not_before:
            not_before, held_for = until, "quiet"
    return Notification(
        topic=announcement.topic,
        seq=announcement.seq,
        channel=channel,
        channel_name=channel.name,
        recipient=recipient.address,
        kind=announcement.kind,
        severity=announcement.severity,
        subject_kind=announcement.subject_kind,
        subject_id=announcement.subject_id,
        host_id=announcement.host_id,
        cap_key=announcement.cap_key or announcement.topic,
        facts=announcement.facts,
        created_at=at,
        not_before=not_before,
        held_for=held_for,
    )
