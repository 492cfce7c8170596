"""Rows of channels, notifications and attempts, in the reader's language."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from frontend.delivery import words
from monitoring.delivery.models import Channel, Notification, NotificationAttempt
from monitoring.delivery.sending import secrets_of_channel
from monitoring.notifiers.phrases import translated
from monitoring.notifiers.told import teller_of


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """One channel. facts: what may be shown of its settings; kept: names of its secrets."""

    channel: Channel
    tone: str
    state: str
    why: str
    takes: str
    where: str
    facts: list[tuple[str, str]]
    kept: list[str]


def channel_rows(found: Iterable[Channel]) -> list[ChannelRow]:
    """Return the rows of channels."""
    return [channel_row(channel) for channel in found]


def channel_row(channel: Channel) -> ChannelRow:
    """Return a channel as the pages show it."""
    tone, state, why = _state(channel)
    topics = ", ".join(words.topic_word(prefix) for prefix in channel.topics) or _("everything")
    return ChannelRow(
        channel=channel,
        tone=tone,
        state=state,
        why=why,
        takes=_("%(topics)s from “%(severity)s”") % {"topics": topics, "severity": channel.get_min_severity_display()},
        where=_where(channel),
        facts=_facts(channel),
        kept=sorted(secrets_of_channel(channel)),
    )


def _state(channel: Channel) -> tuple[str, str, str]:
    if not channel.is_enabled:
        return "silenced", _("Switched off"), translated(channel.disabled_reason)
    if channel.failure:
        return "warning", _("Failing"), translated(channel.failure)
    return ("ok", _("Works"), "") if channel.delivered_at else ("unknown", _("Not used yet"), "")


def _where(channel: Channel) -> str:
    if channel.kind != "mail":
        return ""
    addresses = [entry.get("address", "") for entry in channel.settings.get("recipients", [])]
    if len(addresses) <= 2:
        return ", ".join(addresses)
    more = ngettext("%(first)s and %(count)s more", "%(first)s and %(count)s more", len(addresses) - 1)
    return more % {"first": addresses[0], "count": len(addresses) - 1}


def _facts(channel: Channel) -> list[tuple[str, str]]:
    settings = channel.settings
    if channel.kind == "mail":
        transports = {"tls": "TLS", "starttls": "STARTTLS", "none": _("no encryption")}
        transport = transports.get(settings.get("transport", ""), "")
        server = f"{settings.get('host', '')}:{settings.get('port', '')} ({transport})"
        rows = [
            (_("SMTP server"), server),
            (_("User name"), settings.get("username", "")),
            (_("Sender"), settings["sender"]),
        ]
        rows += [(_("Recipient"), _recipient(entry)) for entry in settings.get("recipients", [])]
    else:
        rows = [(_("Keyword"), settings.get("keyword", ""))]
    if channel.quiet_start and channel.quiet_end:
        rows.append((_("Quiet hours"), f"{channel.quiet_start:%H:%M}–{channel.quiet_end:%H:%M}"))
    if channel.fallback is not None:
        rows.append((_("If it cannot deliver"), channel.fallback.name))
    return [(label, str(value)) for label, value in rows if value]


def _recipient(entry: dict[str, Any]) -> str:
    beside = ", ".join(filter(None, (entry.get("language"), entry.get("time_zone"))))
    return f"{entry.get('address', '')} ({beside})" if beside else str(entry.get("address", ""))


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """One notification. why: of its state, a sentence; held: for what it is held back."""

    notice: Notification
    tone: str
    title: str
    why: str
    held: str

    @property
    def can_resend(self) -> bool:
        """Say whether sending it again means anything."""
        channel = self.notice.channel
        return self.notice.status in {"delivered", "dead"} and channel is not None and channel.is_enabled

    @property
    def can_dismiss(self) -> bool:
        """Say whether it is on the banner."""
        return self.notice.status == "dead" and self.notice.dismissed_at is None


def notice_rows(found: Iterable[Notification]) -> list[NoticeRow]:
    """Return the rows of notifications."""
    return [notice_row(notice) for notice in found]


def notice_row(notice: Notification) -> NoticeRow:
    """Return a notification as the pages show it."""
    return NoticeRow(
        notice=notice,
        tone=words.status_tone(notice.status),
        title=_title(notice),
        why=translated(notice.reason),
        held=words.held_words(notice.held_for) if notice.status == "queued" else "",
    )


def _title(notice: Notification) -> str:
    """Return what it is about, in the reader's language where its topic can still be put into words."""
    teller = teller_of(notice.topic)
    if teller is not None:
        facts = {**notice.facts, "kind": notice.kind, "severity": notice.severity}
        try:
            return teller(facts, get_language() or "en").subject
        except Exception:  # noqa: BLE001  # facts of an older version: what was sent then stands instead
            return notice.title or notice.topic
    return notice.title or notice.topic


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt with all that was said."""

    attempt: NotificationAttempt
    tone: str
    sentence: str


def attempt_rows(notice: Notification) -> list[AttemptRow]:
    """Return the attempts to send the message in which it travels, the newest first."""
    found = NotificationAttempt.objects.filter(notification_id=notice.leader_id or notice.pk)
    return [
        AttemptRow(attempt, words.attempt_tone(attempt.outcome), translated(attempt.sentence))
        for attempt in found.order_by("-started_at", "-pk")[:50]
    ]
