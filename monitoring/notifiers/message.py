"""What is put together for one recipient: parts as they stand in the outbox, and the message that comes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class Part:
    """One topic's share of a message.

    kind: of told.MESSAGE_KINDS. opening_facts, opening_severity: of the message by which this recipient first heard of the
    topic; None when this is that message.
    """

    topic: str
    seq: int
    kind: str
    severity: str
    facts: Mapping[str, Any]
    created_at: datetime
    subject_kind: str = ""
    subject_id: int | None = None
    opening_facts: Mapping[str, Any] | None = None
    opening_severity: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """Where the message comes from and for whom it is.

    domain: right side of message ids. root_id: the message that this one answers; empty for the first. delayed_seconds: how
    long it waited because it could not be delivered. escalated_from: the channel that could not deliver it.
    """

    panel_url: str
    domain: str
    language: str
    zone: ZoneInfo
    at: datetime
    channel_name: str
    recipient: str = ""
    root_id: str = ""
    delayed_seconds: float = 0.0
    escalated_from: str = ""
    stop_url: str = ""
    resend: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """One topic as people read it: everything is plain text in their language and zone; links are whole addresses."""

    word: str
    subject: str
    first_line: str
    rows: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message ready to be put into the form of a channel.

    key: the same for every try, so that a receiver knows a duplicate. subject: of a mail; follow-ups repeat the opening's.
    title: of a chat, which has no threads. payload: for programs.
    """

    key: str
    message_id: str
    root_id: str
    subject: str
    title: str
    severity: str
    kind: str
    language: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    payload: Mapping[str, Any]
    at: datetime
    domain: str
    recipient: str = ""
    stop_url: str = ""
    footer: tuple[str, ...] = field(default=())
