"""What came of an attempt: delivered, later, or dead with another channel tried."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import F, Q, QuerySet

from monitoring.delivery.enums import AttemptOutcome, NoticeKind, NoticeStatus
from monitoring.delivery.leasing import Lease
from monitoring.delivery.models import Channel, Notification, NotificationAttempt
from monitoring.delivery.outbox import RANK
from monitoring.delivery.recipients import recipients_of
from monitoring.delivery.timing import GIVES_UP, retry_delay
from monitoring.notifiers.message import Message
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.phrases import stored
from monitoring.notifiers.verdict import Verdict
from panel.core.enums import Severity

LATE: Final = timedelta(minutes=30)
log = structlog.get_logger(__name__)
_OUTCOMES: Final = {"delivered": AttemptOutcome.DELIVERED, "retry": AttemptOutcome.RETRY}


def settle(
    lease: Lease, message: Message | None, verdict: Verdict, *, at: datetime, latency_ms: float, conversation: str
) -> None:
    """Store the end of an attempt. Who lost the lease meanwhile stores the attempt alone. message: None when there is none."""
    with transaction.atomic():
        NotificationAttempt.objects.filter(pk=lease.attempt_id).update(
            outcome=_OUTCOMES.get(verdict.outcome, AttemptOutcome.REFUSED),
            latency_ms=latency_ms,
            status_code=verdict.status_code,
            error_code=verdict.error_code[:64],
            sentence=stored(verdict.sentence),
            conversation=conversation,
        )
        held = Notification.objects.select_for_update().filter(claim=lease.token)
        rows = sorted(held, key=lambda row: (row.pk != lease.leader.pk, row.pk))
        if not rows:
            log.warning("delivery.lease_lost", notification=lease.leader.pk, outcome=verdict.outcome)
            return
        if verdict.outcome == "delivered" and message is not None:
            _delivered(lease, message, held, at)
        elif _is_over(verdict, rows, at):
            _dead(lease.channel, rows, message.title if message is not None else "", verdict, at)
        else:
            _later(lease, held, rows, verdict, at)


def _is_over(verdict: Verdict, rows: Sequence[Notification], at: datetime) -> bool:
    is_test = any(row.kind == NoticeKind.TEST for row in rows)
    began = min(row.first_try_at or at for row in rows)
    return is_test or verdict.outcome != "retry" or at - began >= GIVES_UP


def _delivered(lease: Lease, message: Message, held: "QuerySet[Notification]", at: datetime) -> None:
    held.update(
        status=NoticeStatus.DELIVERED,
        delivered_at=at,
        message_id=message.message_id,
        title=message.title[:300],
        is_uncertain=False,
        claim=None,
        claimed_until=None,
        retry_at=None,
        reason="",
    )
    Channel.objects.filter(pk=lease.channel.pk).update(delivered_at=at, failure="")


def _later(
    lease: Lease, held: "QuerySet[Notification]", rows: Sequence[Notification], verdict: Verdict, at: datetime
) -> None:
    wait = retry_delay(rows[0].attempt_count, chance=random.random())  # noqa: S311 (spreads retries)
    asked = timedelta(seconds=verdict.retry_after_seconds or 0)
    changed = {
        "retry_at": at + max(wait, asked),
        "reason": stored(verdict.sentence),
        "claim": None,
        "claimed_until": None,
    }
    if not verdict.is_uncertain:
        changed |= {"is_uncertain": False, "leader": None}
    held.update(**changed)
    Channel.objects.filter(pk=lease.channel.pk).update(failed_at=at, failure=stored(verdict.sentence))
    late = [row for row in rows if row.severity == Severity.CRITICAL and at - (row.first_try_at or at) >= LATE]
    _escalate(lease.channel, late, at)


def _dead(channel: Channel, rows: Sequence[Notification], title: str, verdict: Verdict, at: datetime) -> None:
    """End these rows, and what waits behind them for the same recipient; tell of all of it another way."""
    is_test = rows[0].kind == NoticeKind.TEST
    topics = {row.topic for row in rows}
    ended = {"claim": None, "claimed_until": None, "is_uncertain": False, "retry_at": None}
    Notification.objects.filter(pk__in=[row.pk for row in rows]).update(
        status=NoticeStatus.DEAD,
        dead_at=at,
        reason=stored(verdict.sentence),
        title=title[:300],
        dismissed_at=at if is_test else None,
        **ended,
    )
    behind = list(
        Notification.objects.select_for_update().filter(
            channel=channel, recipient=rows[0].recipient, topic__in=topics, status=NoticeStatus.QUEUED
        )
    )
    Notification.objects.filter(pk__in=[row.pk for row in behind]).update(
        status=NoticeStatus.WITHHELD,
        reason=stored(_("What came before it could not be delivered; both went another way.")),
        **ended,
    )
    changes: dict[str, object] = {"failed_at": at, "failure": stored(verdict.sentence)}
    if verdict.outcome == "gone":
        changes |= {"is_enabled": False, "disabled_reason": stored(verdict.sentence)}
    Channel.objects.filter(pk=channel.pk).update(**changes)
    if not is_test:
        log.error("delivery.dead", channel=channel.pk, topics=sorted(topics), reason=verdict.sentence)
        _escalate(channel, [*rows, *behind], at)


def _escalate(channel: Channel, rows: Sequence[Notification], at: datetime) -> None:
    """Queue these on another channel; what that one has anyway stays as it is."""
    for row in rows:
        target = _other_channel(channel, row)
        if target is None:
            log.error("delivery.no_other_channel", topic=row.topic, seq=row.seq, channel=channel.pk)
            continue
        copies = [_copy(row, target, recipient.address, at) for recipient in recipients_of(target)]
        Notification.objects.bulk_create(copies, ignore_conflicts=True)


def _other_channel(channel: Channel, row: Notification) -> Channel | None:
    """Return where to tell it instead: the channel's fallback, else where delivery went well last; none that has it already."""
    has_it = Notification.objects.filter(topic=row.topic, seq=row.seq, channel__isnull=False).values("channel_id")
    began = Q(notifications__topic=row.topic, notifications__escalated_from__isnull=False)
    others = Channel.objects.filter(is_enabled=True).exclude(pk=channel.pk).exclude(pk__in=has_it)
    if channel.fallback_id is not None:
        chosen = others.filter(pk=channel.fallback_id).first()
        if chosen is not None:
            return chosen
    earlier = others.filter(began).first()  # one topic stays on one channel
    return earlier or others.order_by(F("delivered_at").desc(nulls_last=True), "pk").first()


def _copy(row: Notification, target: Channel, address: str, at: datetime) -> Notification:
    return Notification(
        topic=row.topic,
        seq=row.seq,
        channel=target,
        channel_name=target.name,
        recipient=address,
        kind=row.kind,
        severity=row.severity,
        subject_kind=row.subject_kind,
        subject_id=row.subject_id,
        host_id=row.host_id,
        cap_key=row.cap_key,
        facts=row.facts,
        created_at=at,
        not_before=at,
        escalated_from=row,
    )


assert set(RANK) == set(Severity.values)  # noqa: S101 (a severity without a rank would be routed nowhere)
