"""Channels, the outbox, every attempt to send, and the signs of life of what must not stand still.

Sentences (`reason`, `failure`, `sentence`, `disabled_reason`) are kept as monitoring.notifiers.phrases stores them, so that
every reader has them in their language.
"""

from typing import Any

from django.db import models

from monitoring.delivery.enums import AttemptOutcome, ChannelKind, NoticeKind, NoticeStatus
from panel.core.crypto import EncryptedTextField
from panel.core.enums import Severity


class Channel(models.Model):
    """One way to reach people or programs.

    settings: what may be shown, by kind (monitoring.notifiers.registry says which). secrets: the rest, as a JSON object, never
    shown again. topics: prefixes of topics that it gets, all when empty. quiet_start, quiet_end: in the zone of the recipient,
    hold back what is not critical. fallback: who is told when this channel cannot deliver; any other one when there is none.
    """

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=16, choices=ChannelKind.choices)
    settings: Any = models.JSONField(default=dict)
    secrets = EncryptedTextField(blank=True, default="")
    language = models.CharField(max_length=16, blank=True, default="")
    time_zone = models.CharField(max_length=64, blank=True, default="")
    min_severity = models.CharField(max_length=16, choices=Severity.choices, default=Severity.INFO)
    topics: Any = models.JSONField(default=list)
    quiet_start = models.TimeField(null=True)
    quiet_end = models.TimeField(null=True)
    fallback = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    is_enabled = models.BooleanField(default=True)
    disabled_reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)
    delivered_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failure = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(kind__in=ChannelKind.values), name="channel_kind_known"),
            models.CheckConstraint(condition=models.Q(min_severity__in=Severity.values), name="channel_severity_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Notification(models.Model):
    """One thing to tell one recipient of a channel, once: unique by (topic, seq, channel, recipient).

    recipient: an address for mail, else empty. cap_key: what at most four messages in 24 h are counted by. not_before: held
    back until then, for `held_for`. retry_at: not tried again before. first_try_at: since when it could have been told.
    leader: the notification in whose message this one travels. is_uncertain: an attempt began of which nobody knows whether it
    arrived; such a one is sent again as it was. message_id: of the message that told it. resend: how often a person had it
    sent again.
    """

    topic = models.CharField(max_length=100)
    seq = models.IntegerField()
    channel = models.ForeignKey(Channel, on_delete=models.SET_NULL, null=True, related_name="notifications")
    channel_name = models.CharField(max_length=100)
    recipient = models.CharField(max_length=254, blank=True, default="")
    kind = models.CharField(max_length=16, choices=NoticeKind.choices)
    severity = models.CharField(max_length=16, choices=Severity.choices)
    subject_kind = models.CharField(max_length=32, blank=True, default="")
    subject_id = models.BigIntegerField(null=True)
    host_id = models.BigIntegerField(null=True)
    cap_key = models.CharField(max_length=100)
    facts: Any = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    status = models.CharField(max_length=16, choices=NoticeStatus.choices, default=NoticeStatus.QUEUED)
    not_before = models.DateTimeField()
    held_for = models.CharField(max_length=16, blank=True, default="")
    retry_at = models.DateTimeField(null=True)
    first_try_at = models.DateTimeField(null=True)
    attempt_count = models.IntegerField(default=0)
    is_uncertain = models.BooleanField(default=False)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    leader = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="members")
    escalated_from = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    message_id = models.CharField(max_length=200, blank=True, default="")
    title = models.CharField(max_length=300, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    delivered_at = models.DateTimeField(null=True)
    dead_at = models.DateTimeField(null=True)
    dismissed_at = models.DateTimeField(null=True)
    resend = models.IntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["topic", "seq", "channel", "recipient"], name="notification_once"),
            models.CheckConstraint(
                condition=models.Q(status__in=NoticeStatus.values), name="notification_status_known"
            ),
            models.CheckConstraint(condition=models.Q(kind__in=NoticeKind.values), name="notification_kind_known"),
        ]
        indexes = [
            models.Index(
                fields=["channel", "recipient"], condition=models.Q(status="queued"), name="notification_queued"
            ),
            models.Index(
                fields=["dead_at"], condition=models.Q(status="dead", dismissed_at=None), name="notification_dead"
            ),
            models.Index(fields=["cap_key", "channel", "-delivered_at"], name="notification_by_cap_key"),
            models.Index(fields=["-created_at", "-id"], name="notification_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.topic}.{self.seq} to {self.channel_name}"


class NotificationAttempt(models.Model):
    """One attempt to send the message that this notification leads, with all that was said, secrets cut."""

    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="attempts")
    channel = models.ForeignKey(Channel, on_delete=models.SET_NULL, null=True, related_name="attempts")
    started_at = models.DateTimeField()
    outcome = models.CharField(max_length=16, choices=AttemptOutcome.choices, default=AttemptOutcome.BEGUN)
    latency_ms = models.FloatField(null=True)
    status_code = models.IntegerField(null=True)
    error_code = models.CharField(max_length=64, blank=True, default="")
    sentence = models.TextField(blank=True, default="")
    conversation = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(outcome__in=AttemptOutcome.values), name="attempt_outcome_known")
        ]
        indexes = [models.Index(fields=["channel", "-started_at"], name="attempt_by_channel")]

    def __str__(self) -> str:
        return f"{self.notification_id} at {self.started_at:%Y-%m-%d %H:%M:%S}: {self.outcome}"


class Heartbeat(models.Model):
    """When a part that must not stand still last finished a round: `dispatcher`, `evaluator`."""

    name = models.CharField(max_length=32, primary_key=True)
    at = models.DateTimeField()
    facts: Any = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%Y-%m-%d %H:%M:%S}"
