"""Sending one rendered message over its channel: the only place that turns a message into traffic."""

import json
import time
from dataclasses import dataclass
from datetime import datetime

from monitoring.delivery import http, smtp
from monitoring.delivery.enums import ChannelKind
from monitoring.delivery.models import Channel
from monitoring.delivery.secrecy import without_secrets
from monitoring.notifiers import mail
from monitoring.notifiers.message import Message
from monitoring.notifiers.phrases import Phrase
from monitoring.notifiers.registry import NOTIFIERS
from monitoring.notifiers.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of it. conversation: all that was said, secrets cut."""

    verdict: Verdict
    latency_ms: float
    conversation: str


def secrets_of_channel(channel: Channel) -> dict[str, str]:
    """Return the channel's secrets. Raises DecryptionError."""
    found: dict[str, str] = json.loads(channel.secrets or "{}")
    return found


def send(channel: Channel, message: Message, *, at: datetime) -> Sent:
    """Put the message into the channel's form and send it; takes 20 s at most, holds no transaction, never raises for trouble."""
    secrets = secrets_of_channel(channel)
    began = time.monotonic()
    if channel.kind == ChannelKind.MAIL:
        verdict, said = smtp.send(mail.build(message, channel.settings), channel.settings, secrets.get("password", ""))
    else:
        notifier = NOTIFIERS[channel.kind]
        found, said = http.post(notifier.build(message, channel.settings, secrets, at=at))
        verdict = found if isinstance(found, Verdict) else notifier.interpret(found)
    latency_ms = (time.monotonic() - began) * 1000
    verdict = _cut(verdict, secrets)
    return Sent(verdict, latency_ms, without_secrets(said, secrets))


def _cut(verdict: Verdict, secrets: dict[str, str]) -> Verdict:
    return Verdict(
        verdict.outcome,
        _cut_sentence(verdict.sentence, secrets),
        verdict.status_code,
        without_secrets(verdict.error_code, secrets),
        verdict.retry_after_seconds,
        verdict.is_uncertain,
    )


def _cut_sentence(sentence: str, secrets: dict[str, str]) -> str:
    if isinstance(sentence, Phrase):
        return Phrase(
            sentence.template, {name: without_secrets(value, secrets) for name, value in sentence.values.items()}
        )
    return without_secrets(sentence, secrets)
