"""From parts to a message in the recipient's language and zone; everything that can fail to render fails here, before sending."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import structlog
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, override

from monitoring.notifiers.message import Context, Message, Part, Section
from monitoring.notifiers.text import localise, one_line
from monitoring.notifiers.told import Told, teller_of
from monitoring.notifiers.words import duration, kind_word, severity_word

RANK: Final = {"info": 0, "warning": 1, "critical": 2}
MOST_ROWS: Final = 30
WHOLE_SECTIONS: Final = 6  # more than that are told in a line each
TOLD_DELAY: Final = timedelta(minutes=5).total_seconds()
log = structlog.get_logger(__name__)


def compose(parts: Sequence[Part], context: Context) -> Message:
    """Return one message about these parts (one at least). Never raises for what a teller does: plain facts go out instead."""
    with override(context.language):
        return _composed(parts, context)


def _composed(parts: Sequence[Part], context: Context) -> Message:
    first = parts[0]
    sections = tuple(_section(part, context, is_brief=len(parts) > WHOLE_SECTIONS) for part in parts)
    worst = max((part.severity for part in parts), key=lambda each: RANK.get(each, 0))
    key = _key(parts, context)
    if len(parts) == 1:
        kind = first.kind
        title = f"{sections[0].word}: {sections[0].subject}"
        subject = _subject(first, context)
    else:
        kind, title = "digest", _digest_title(parts, sections, worst)
        subject = title
    return Message(
        key=key,
        message_id=f"<{key}@{context.domain}>",
        root_id=context.root_id,
        subject=_plain_subject(subject),
        title=one_line(title, limit=200),
        severity=worst,
        kind=kind,
        language=context.language,
        sections=sections,
        notes=_notes(context),
        payload=_payload(parts, sections, context, kind=kind, severity=worst, title=title),
        at=context.at,
        domain=context.domain,
        recipient=context.recipient,
        stop_url=context.stop_url,
        footer=_footer(context),
    )


def _key(parts: Sequence[Part], context: Context) -> str:
    """Name the message: the same parts are always named the same, whoever sends them and however often."""
    first = parts[0]
    name = first.topic.replace(":", "-")
    if len(parts) > 1:
        name = f"group-{name}.{first.seq}"
    elif first.opening_facts is not None:
        name = f"{name}.{first.seq}"
    return f"{name}.r{context.resend}" if context.resend else name


def _told(part: Part, facts: Mapping[str, Any], kind: str, severity: str, language: str) -> Told:
    given = {**facts, "kind": kind, "severity": severity}
    teller = teller_of(part.topic)
    if teller is not None:
        try:
            return teller(given, language)
        except Exception:  # whatever a teller does wrong, the message goes out
            log.exception("delivery.teller_failed", topic=part.topic, seq=part.seq)
    rows = tuple((str(name), str(value)) for name, value in facts.items())
    return Told(subject=part.topic, first_line=f"{part.topic}: {kind_word(kind, severity)}", rows=rows)


def _section(part: Part, context: Context, *, is_brief: bool) -> Section:
    told = _told(part, part.facts, part.kind, part.severity, context.language)

    def shown(text: str) -> str:
        return one_line(localise(str(text), context.zone))

    rows = () if is_brief else tuple((shown(label), shown(value)) for label, value in told.rows[:MOST_ROWS])
    links = tuple((shown(label), _whole(str(address), context)) for label, address in told.links)
    return Section(
        word=kind_word(part.kind, part.severity),
        subject=_numbered(shown(told.subject), part),
        first_line=shown(told.first_line),
        rows=rows,
        links=links[:1] if is_brief else links,
    )


def _whole(address: str, context: Context) -> str:
    return one_line(context.panel_url.rstrip("/") + address if address.startswith("/") else address)


def _numbered(subject: str, part: Part) -> str:
    """Put the episode's number behind its subject, so that mails can be told apart and found."""
    prefix, _colon, number = part.topic.partition(":")
    mark = f"#{number}"
    return f"{subject} {mark}" if prefix == "episode" and number.isdecimal() and mark not in subject else subject


def _subject(part: Part, context: Context) -> str:
    """Return the subject of a mail: follow-ups repeat the opening's to the letter, because some readers thread by it."""
    if part.opening_facts is None:
        told = _told(part, part.facts, part.kind, part.severity, context.language)
        word = (
            severity_word(part.severity) if part.kind not in {"test", "digest"} else kind_word(part.kind, part.severity)
        )
        return f"{word} {_numbered(localise(told.subject, context.zone), part)}"
    severity = part.opening_severity or part.severity
    told = _told(part, part.opening_facts, "opening", severity, context.language)
    return f"Re: {severity_word(severity)} {_numbered(localise(told.subject, context.zone), part)}"


def _plain_subject(subject: str) -> str:
    """Take square brackets out: some readers drop what stands in them and merge what differs only there."""
    return one_line(subject.replace("[", "(").replace("]", ")"), limit=200)


def _digest_title(parts: Sequence[Part], sections: Sequence[Section], worst: str) -> str:
    count = ngettext("%(count)s message", "%(count)s messages", len(parts)) % {"count": len(parts)}
    others = _("%(first)s and others") % {"first": sections[0].subject}
    return f"{severity_word(worst)} {count}: {others}"


def _notes(context: Context) -> tuple[str, ...]:
    notes = []
    if context.delayed_seconds >= TOLD_DELAY:
        notes.append(
            _("Delayed by %(time)s: it could not be delivered before.") % {"time": duration(context.delayed_seconds)}
        )
    if context.escalated_from:
        notes.append(
            _("It comes this way because the channel %(channel)s could not deliver it.")
            % {"channel": one_line(context.escalated_from, limit=100)}
        )
    return tuple(notes)


def _footer(context: Context) -> tuple[str, ...]:
    why = _("You get this because you are on the channel %(channel)s of Fleetdeck at %(address)s.") % {
        "channel": one_line(context.channel_name, limit=100),
        "address": context.panel_url,
    }
    return (why,)


def _payload(
    parts: Sequence[Part], sections: Sequence[Section], context: Context, *, kind: str, severity: str, title: str
) -> dict[str, Any]:
    items = [
        {
            "topic": part.topic,
            "seq": part.seq,
            "kind": part.kind,
            "severity": part.severity,
            "subject_kind": part.subject_kind,
            "subject_id": part.subject_id,
            "announced_at": part.created_at.isoformat(),
            "subject": section.subject,
            "text": section.first_line,
            "facts": dict(part.facts),
            "links": [{"label": label, "url": address} for label, address in section.links],
        }
        for part, section in zip(parts, sections, strict=True)
    ]
    prefix = parts[0].topic.partition(":")[0]
    return {
        "type": f"{prefix}.{kind}" if len(parts) == 1 else "digest",
        "timestamp": context.at.isoformat(),
        "data": {
            "severity": severity,
            "title": one_line(title, limit=300),
            "items": items,
            "notes": list(_notes(context)),
        },
    }
