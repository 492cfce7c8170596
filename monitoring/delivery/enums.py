"""Choices of delivery."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ChannelKind(models.TextChoices):
    """How a channel reaches people or programs."""

    MAIL = "mail", _("Mail")
    WEBHOOK = "webhook", _("Webhook")
    DINGTALK = "dingtalk", _("DingTalk")
    WECOM = "wecom", _("WeCom")
    FEISHU = "feishu", _("Feishu")
    SLACK = "slack", _("Slack")


class NoticeKind(models.TextChoices):
    """What a notification tells of its topic."""

    OPENING = "opening", _("Opened")
    UPDATE = "update", _("Changed")
    REMINDER = "reminder", _("Reminder")
    RESOLVED = "resolved", _("Resolved")
    FLAPPING = "flapping", _("Flapping")
    DIGEST = "digest", _("Digest")
    TEST = "test", _("Test")


class NoticeStatus(models.TextChoices):
    """Where a notification stands; every one but `queued` is an end."""

    QUEUED = "queued", _("Queued")
    DELIVERED = "delivered", _("Delivered")
    WITHHELD = "withheld", _("Not sent")
    DEAD = "dead", _("Undeliverable")


class AttemptOutcome(models.TextChoices):
    """How one attempt ended. `begun` without an end within the lease becomes `interrupted`."""

    BEGUN = "begun", _("Under way")
    DELIVERED = "delivered", _("Accepted")
    RETRY = "retry", _("Failed for now")
    REFUSED = "refused", _("Refused")
    INTERRUPTED = "interrupted", _("Interrupted")
