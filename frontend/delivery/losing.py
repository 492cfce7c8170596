"""What nobody is told of any more when a channel goes: rules by name, other topics in a word."""

from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend.delivery.words import TOPICS, topic_word
from monitoring.alerts.rules import base_of
from monitoring.alerts.selectors import rule_list
from monitoring.alerts.words import rule_title
from monitoring.delivery.channels import channel_users
from monitoring.delivery.models import Channel
from monitoring.delivery.outbox import RANK

ALERTS: Final = "episode"
MOST_NAMES: Final = 8


def _takes(channel: Channel, prefix: str, severity: str) -> bool:
    return (
        channel.is_enabled and RANK[severity] >= RANK[channel.min_severity] and prefix in (channel.topics or [prefix])
    )


def losing(channel: Channel) -> list[str]:
    """Return a sentence for each rule, or other topic, of which this channel alone is told."""
    others = list(Channel.objects.filter(is_enabled=True).exclude(pk=channel.pk))
    alone = {
        (prefix, severity)
        for prefix in TOPICS
        for severity in RANK
        if _takes(channel, prefix, severity) and not any(_takes(other, prefix, severity) for other in others)
    }
    names = channel_users(channel.pk)
    if any(prefix == ALERTS for prefix, _severity in alone):
        rules = [rule for rule in rule_list() if rule.is_enabled]
        names += [rule_title(rule.key, rule.name) for rule in rules if (ALERTS, str(base_of(rule).severity)) in alone]
    sentences = [_("%(name)s loses its receiver.") % {"name": name} for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        more = ngettext(
            "%(count)s more rule loses it too.", "%(count)s more rules lose it too.", len(names) - MOST_NAMES
        )
        sentences.append(more % {"count": len(names) - MOST_NAMES})
    topics = sorted({prefix for prefix, _severity in alone if prefix != ALERTS})
    return sentences + [
        _("Nobody is told of this any more: %(topic)s.") % {"topic": topic_word(each)} for each in topics
    ]
