"""What people do with notifications: a test of a channel, sending again, dismissing what is dead."""

from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from monitoring.delivery.dispatcher import deliver
from monitoring.delivery.enums import NoticeStatus
from monitoring.delivery.leasing import lease_next
from monitoring.delivery.models import Channel, Notification
from monitoring.delivery.outbox import Announcement, notification_of
from monitoring.delivery.recipients import Recipient, recipients_of
from monitoring.delivery.selectors import trouble_tell
from monitoring.delivery.sending import Sent
from monitoring.notifiers.told import Told, register_teller
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound

TEST: Final = "test"


def channel_test(*, channel_id: int, actor: Actor, address: str = "") -> tuple[Notification, Sent]:
    """Send one message over the channel now, the way that all go; returns its row and what came of it, within 20 s.

    address: of a mail channel's recipients; the first when empty. Raises NotFound or InvalidInput.
    """
    channel = Channel.objects.filter(pk=channel_id).first()
    if channel is None:
        raise NotFound(_("There is no such channel."))
    recipients = recipients_of(channel)
    recipient = next((each for each in recipients if not address or each.address == address), None)
    if recipient is None:
        raise InvalidInput(_("That address is none of the channel's recipients."), field="address")
    with transaction.atomic():
        row = _test_row(channel, recipient, actor)
        audit(actor=actor, action="channel.test", target=channel, target_name=channel.name)
    lease = lease_next(channel.pk, at=now(), only=row.pk)
    if lease is None:
        raise Conflict(_("Another process is sending this test already; look at the notifications."))
    sent = deliver(lease)
    row.refresh_from_db()
    return row, sent


def _test_row(channel: Channel, recipient: Recipient, actor: Actor) -> Notification:
    last = Notification.objects.filter(topic=f"{TEST}:{channel.pk}").order_by("-seq").first()
    announcement = Announcement(
        topic=f"{TEST}:{channel.pk}",
        seq=last.seq + 1 if last else 1,
        kind="test",
        severity="info",
        subject_kind="channel",
        subject_id=channel.pk,
        facts={"channel": channel.name, "by": actor.name},
    )
    row = notification_of(announcement, channel, recipient, at=now())
    row.resend = announcement.seq - 1  # each test has a Message-ID of its own
    row.save()
    return row


def tell_test(facts: "dict[str, str]", language: str) -> Told:  # noqa: ARG001 (a teller's)
    """Put a test into words."""
    return Told(
        subject=_("Test of the channel %(channel)s") % {"channel": facts.get("channel", "")},
        first_line=_("This channel works: alerts will come this way. Sent by %(person)s.")
        % {"person": facts.get("by", "")},
        links=((_("Channels"), "/channels/"),),
    )


def register() -> None:
    """Make tests known to the renderer."""
    register_teller(TEST, tell_test)  # type: ignore[arg-type]  # facts of a test are texts


def notification_resend(*, notification_id: int, actor: Actor) -> Notification:
    """Queue a message again that has ended, under a Message-ID of its own, to the same recipient. Raises NotFound or Conflict."""
    with transaction.atomic():
        row = Notification.objects.select_for_update(of=("self",)).filter(pk=notification_id).first()
        if row is None:
            raise NotFound(_("There is no such notification."))
        leader = row if row.leader_id is None else Notification.objects.select_for_update().get(pk=row.leader_id)
        if leader.status not in {NoticeStatus.DELIVERED, NoticeStatus.DEAD}:
            raise Conflict(_("Only what was delivered or is undeliverable can be sent again."))
        if leader.channel is None or not leader.channel.is_enabled:
            raise Conflict(_("Its channel is switched off or removed; switch it on first."))
        members = Notification.objects.filter(pk__in=[leader.pk, *leader.members.values_list("pk", flat=True)])
        members.update(
            status=NoticeStatus.QUEUED, not_before=now(), held_for="", retry_at=None, first_try_at=None, attempt_count=0,
            is_uncertain=True, claim=None, claimed_until=None, reason="", delivered_at=None, dead_at=None, dismissed_at=None,
            resend=leader.resend + 1,
        )  # fmt: skip
        audit(
            actor=actor, action="notification.resend", target=leader, target_name=str(leader),
            after={"channel": leader.channel_name, "recipient": leader.recipient},
        )  # fmt: skip
    leader.refresh_from_db()
    trouble_tell(at=now())
    return leader


def notification_dismiss(*, notification_id: int, actor: Actor) -> Notification:
    """Take an undeliverable message off the banner. Raises NotFound or Conflict."""
    with transaction.atomic():
        row = Notification.objects.select_for_update(of=("self",)).filter(pk=notification_id).first()
        if row is None:
            raise NotFound(_("There is no such notification."))
        if row.status != NoticeStatus.DEAD:
            raise Conflict(_("Only what is undeliverable can be dismissed."))
        if row.dismissed_at is None:
            row.dismissed_at = now()
            row.save(update_fields=["dismissed_at"])
            row.members.filter(status=NoticeStatus.DEAD).update(dismissed_at=row.dismissed_at)
            audit(actor=actor, action="notification.dismiss", target=row, target_name=str(row))
    trouble_tell(at=now())
    return row


def notifications_dismiss(*, actor: Actor) -> int:
    """Take every undeliverable message off the banner; returns how many there were."""
    with transaction.atomic():
        count = Notification.objects.filter(status=NoticeStatus.DEAD, dismissed_at=None).update(dismissed_at=now())
        if count:
            audit(actor=actor, action="notification.dismiss_all", after={"count": count})
    trouble_tell(at=now())
    return count
