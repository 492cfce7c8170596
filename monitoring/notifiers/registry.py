"""Every kind of channel that is reached over HTTP; mail has a wire of its own (mail.py)."""

from typing import Final

from monitoring.notifiers import mail
from monitoring.notifiers.base import Notifier, Window
from monitoring.notifiers.dingtalk import DingTalk
from monitoring.notifiers.feishu import Feishu
from monitoring.notifiers.slack import Slack
from monitoring.notifiers.webhook import Webhook
from monitoring.notifiers.wecom import WeCom

MAIL: Final = "mail"
NOTIFIERS: Final[dict[str, Notifier]] = {
    "webhook": Webhook(),
    "dingtalk": DingTalk(),
    "wecom": WeCom(),
    "feishu": Feishu(),
    "slack": Slack(),
}


def windows_of(kind: str) -> tuple[Window, ...]:
    """Return how many messages a channel of this kind may be sent."""
    return mail.WINDOWS if kind == MAIL else NOTIFIERS[kind].windows


def settings_of(kind: str) -> frozenset[str]:
    """Return the names of what may be shown."""
    return mail.SETTINGS if kind == MAIL else NOTIFIERS[kind].settings


def secrets_of(kind: str) -> frozenset[str]:
    """Return the names of what is never shown again."""
    return mail.SECRETS if kind == MAIL else NOTIFIERS[kind].secrets
