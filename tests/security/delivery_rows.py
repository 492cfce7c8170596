"""A channel and a notification that could not be delivered, and every write of their API with a body that works."""

import json

from monitoring.models import Channel, Notification, NotificationAttempt
from panel.core.clock import now

URL = "https://robot.invalid/hook/0123456789abcdef"


def delivery_rows(row):
    """Make the rows, each with the id `row`."""
    at = now()
    channel = Channel.objects.create(
        pk=row, name="robot", kind="wecom", secrets=json.dumps({"url": URL}), created_at=at, created_by_name="test"
    )
    notice = Notification.objects.create(
        pk=row, topic="test:1", seq=1, channel=channel, channel_name="robot", kind="opening", severity="critical",
        cap_key="test:1", created_at=at, not_before=at, status="dead", dead_at=at,
    )  # fmt: skip
    NotificationAttempt.objects.create(pk=row, notification=notice, channel=channel, started_at=at, outcome="refused")


DELIVERY_WRITES = {
    "post channel-list": ({"name": "other", "kind": "wecom", "secrets": {"url": URL}}, "channel.create"),
    "patch channel-detail": ({"min_severity": "critical"}, "channel.update"),
    "delete channel-detail": ({}, "channel.delete"),
    "post channel-test": ({}, "channel.test"),
    "put channel-secrets": ({"secrets": {"url": URL + "0"}}, "channel.replace_secret"),
    "post channel-disable": ({}, "channel.disable"),
    "post channel-enable": ({}, "channel.enable"),
    "post notification-resend": ({}, "notification.resend"),
    "post notification-dismiss": ({}, "notification.dismiss"),
}
