"""Words of channels: what each kind is, what topics are called, how things stand."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.delivery.enums import AttemptOutcome, NoticeStatus
from monitoring.notifiers.told import known_prefixes

KINDS: Final[dict[str, Promise]] = {
    "mail": gettext_lazy("Any SMTP server; each recipient in their own language and zone."),
    "dingtalk": gettext_lazy("A robot of a DingTalk group (custom, by address)."),
    "wecom": gettext_lazy("A robot of a WeCom group."),
    "feishu": gettext_lazy("A custom robot of a Feishu or Lark group."),
    "slack": gettext_lazy("An incoming webhook of Slack, Mattermost or Rocket.Chat."),
    "webhook": gettext_lazy("A program of yours; signed as Standard Webhooks says, each message by itself."),
}
TOPICS: Final[dict[str, Promise]] = {
    "episode": gettext_lazy("Alerts"),
    "waste": gettext_lazy("Idle waste"),
    "budget": gettext_lazy("Budgets"),
}
_TONES: Final = {
    NoticeStatus.QUEUED: "progress",
    NoticeStatus.DELIVERED: "ok",
    NoticeStatus.WITHHELD: "silenced",
    NoticeStatus.DEAD: "critical",
}
_ATTEMPT_TONES: Final = {
    AttemptOutcome.BEGUN: "progress",
    AttemptOutcome.DELIVERED: "ok",
    AttemptOutcome.RETRY: "warning",
    AttemptOutcome.REFUSED: "critical",
    AttemptOutcome.INTERRUPTED: "unknown",
}


def topic_word(prefix: str) -> str:
    """Return what topics of this prefix are called."""
    return str(TOPICS.get(prefix, prefix))


def topic_choices() -> list[tuple[str, str]]:
    """Return the topics that a channel can be told of, in a stable order."""
    prefixes = [*TOPICS, *(prefix for prefix in known_prefixes() if prefix not in TOPICS and prefix != "test")]
    return [(prefix, topic_word(prefix)) for prefix in prefixes]


def status_tone(status: str) -> str:
    """Return the mark of a notification's state."""
    return _TONES[NoticeStatus(status)]


def attempt_tone(outcome: str) -> str:
    """Return the mark of an attempt's end."""
    return _ATTEMPT_TONES[AttemptOutcome(outcome)]


def held_words(held_for: str) -> str:
    """Return for what a notification is held back."""
    words = {
        "group": _("gathered with others of its server"),
        "quiet": _("quiet hours"),
        "storm": _("gathered: many messages at once"),
        "cap": _("four messages of it were sent today"),
    }
    return words.get(held_for, "")
