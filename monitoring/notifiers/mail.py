"""Mails: plain text and HTML of the same facts, headers that thread and stay quiet, and what an SMTP server's reply means."""

import re
from collections.abc import Mapping
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, Final

from django.utils.html import escape
from django.utils.translation import gettext, override

from monitoring.notifiers.base import SettingsRefused, Window
from monitoring.notifiers.message import Message, Section
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.text import one_line
from monitoring.notifiers.verdict import Verdict

WINDOWS: Final = (Window(30, 60.0),)
SETTINGS: Final = frozenset(
    {"preset", "host", "port", "transport", "username", "sender", "sender_name", "recipients", "ca_certificate"}
)
SECRETS: Final = frozenset({"password"})
TRANSPORTS: Final = ("tls", "starttls", "none")
MOST_RECIPIENTS: Final = 50
_ADDRESS: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}")
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?|\[?[0-9a-fA-F:]{2,39}\]?")
TEMPORARY_AUTH: Final = frozenset({421, 432, 454})


def is_address(text: str) -> bool:
    """Say whether this is a mail address that any server takes: ASCII, one @, no comments."""
    return bool(_ADDRESS.fullmatch(text)) and len(text) <= 254


def check(settings: Mapping[str, Any], secrets: Mapping[str, str]) -> None:
    """Raise SettingsRefused for what cannot work."""
    if not _HOST.fullmatch(str(settings.get("host", ""))):
        raise SettingsRefused(_("Give the SMTP server's name, such as smtp.example.com."), field="host")
    port = settings.get("port")
    if not isinstance(port, int) or not 0 < port < 65_536:
        raise SettingsRefused(_("A port is from 1 to 65535: 465 for TLS, 587 for STARTTLS."), field="port")
    if settings.get("transport") not in TRANSPORTS:
        raise SettingsRefused(_("It is one of: %(names)s") % {"names": ", ".join(TRANSPORTS)}, field="transport")
    if settings.get("transport") == "none" and secrets.get("password"):
        raise SettingsRefused(_("A password is not sent without TLS; choose TLS or STARTTLS."), field="transport")
    if secrets.get("password") and not settings.get("username"):
        raise SettingsRefused(_("A password needs its user name, mostly the whole address."), field="username")
    if not is_address(str(settings.get("sender", ""))):
        raise SettingsRefused(_("Give the sender's mail address; most servers want the mailbox's own."), field="sender")
    recipients = settings.get("recipients") or []
    wrong = [entry.get("address", "") for entry in recipients if not is_address(entry.get("address", ""))]
    if wrong or not recipients:
        raise SettingsRefused(
            _("Give one mail address a line. Not one: %(addresses)s") % {"addresses": ", ".join(wrong)[:200] or "–"},
            field="recipients",
        )
    if len(recipients) > MOST_RECIPIENTS:
        raise SettingsRefused(
            _("A channel has at most %(count)s recipients.") % {"count": MOST_RECIPIENTS}, field="recipients"
        )


def build(message: Message, settings: Mapping[str, Any]) -> EmailMessage:
    """Return the mail as it goes over the wire. Everything in its headers is one line without control characters."""
    mail = EmailMessage(policy=SMTP)
    user, _at, domain = str(settings["sender"]).rpartition("@")
    mail["From"] = Address(one_line(str(settings.get("sender_name") or "Fleetdeck"), limit=100), user, domain)
    user, _at, domain = message.recipient.rpartition("@")
    mail["To"] = Address("", user, domain)
    mail["Subject"] = message.subject
    mail["Date"] = format_datetime(message.at)
    mail["Message-ID"] = message.message_id
    if message.root_id and message.root_id != message.message_id:
        mail["In-Reply-To"] = message.root_id
        mail["References"] = message.root_id
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail["List-ID"] = f"<fleetdeck.{message.domain}>"
    if message.stop_url:
        mail["List-Unsubscribe"] = f"<{message.stop_url}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail["X-Entity-Ref-ID"] = message.key
    with override(message.language):
        mail.set_content(text_of(message), charset="utf-8", cte="base64")
        mail.add_alternative(html_of(message), subtype="html", charset="utf-8", cte="base64")
    mail["Content-Language"] = "zh-CN" if message.language.startswith("zh") else message.language
    return mail


def text_of(message: Message) -> str:
    """Return the plain text."""
    blocks = ["\n".join(message.notes)] if message.notes else []
    for section in message.sections:
        lines = [f"{section.word}: {section.subject}", "", section.first_line, ""]
        lines += [f"{label}: {value}" for label, value in section.rows]
        lines += [""] if section.rows and section.links else []
        lines += [f"{label}: {address}" for label, address in section.links]
        blocks.append("\n".join(lines).rstrip())
    return "\n\n".join(blocks) + "\n\n-- \n" + "\n".join((*message.footer, *_stop_line(message))) + "\n"


def _stop_line(message: Message) -> tuple[str, ...]:
    return (gettext("Get no more of these: %(address)s") % {"address": message.stop_url},) if message.stop_url else ()


def html_of(message: Message) -> str:
    """Return the same facts as HTML: no pictures, nothing loaded from anywhere."""
    notes = "".join(f"<p><b>{escape(note)}</b></p>" for note in message.notes)
    body = notes + "".join(_section_html(section, message) for section in message.sections)
    footer = "<br>".join(escape(line) for line in (*message.footer, *_stop_line(message)))
    language = "zh-CN" if message.language.startswith("zh") else message.language
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{escape(message.subject)}</title></head>'
        f'<body style="font:14px/1.6 sans-serif;color:#17202b">{body}'
        f'<p style="color:#586574;font-size:12px;border-top:1px solid #d5dce3;padding-top:8px">{footer}</p></body></html>\n'
    )


def _section_html(section: Section, message: Message) -> str:
    colour = "#0b6b4b" if message.kind in {"resolved", "recovered"} else {
        "critical": "#b0221b", "warning": "#8a5200",
    }.get(message.severity, "#0b5cad")  # fmt: skip
    rows = "".join(
        f'<tr><th style="text-align:left;padding:2px 12px 2px 0;color:#455261;font-weight:400;vertical-align:top">'
        f'{escape(label)}</th><td style="padding:2px 0">{escape(value)}</td></tr>'
        for label, value in section.rows
    )
    links = " · ".join(
        f'<a href="{escape(address)}" style="color:#0b5cad">{escape(label)}</a>'
        for label, address in section.links
        if address.startswith(("http://", "https://"))
    )
    return (
        f'<h2 style="font-size:16px;margin:16px 0 4px;color:{colour}">{escape(section.word)}: {escape(section.subject)}</h2>'
        f'<p style="margin:4px 0">{escape(section.first_line)}</p>'
        + (f'<table style="border-collapse:collapse;margin:8px 0">{rows}</table>' if rows else "")
        + (f"<p>{links}</p>" if links else "")
    )


def interpret(code: int, said: str, *, phase: str) -> Verdict:
    """Say what an SMTP reply means. phase: connect, hello, starttls, auth, sender, recipient, data."""
    said = one_line(said, limit=200)
    if 200 <= code < 300:
        return Verdict("delivered", said, code)
    values = {"code": code, "said": said}
    if phase == "auth" and code not in TEMPORARY_AUTH:
        sentence = _(
            "The server refuses user name or password (%(code)s). QQ, 163 and others want the authorisation code (授权码) from"
            " the mailbox's settings, Gmail an app password. It said: %(said)s"
        )
        return Verdict("refused", sentence % values, code, str(code))
    if 400 <= code < 500:
        sentence = _("The server puts it off (%(code)s); it is tried again. It said: %(said)s")
        return Verdict("retry", sentence % values, code, str(code))
    if code < 400:
        return Verdict("retry", _("The server gave a reply that makes no sense here: %(code)s %(said)s") % values, code)
    sentences = {
        "sender": _(
            "The server refuses the sender (%(code)s): mostly it must be the mailbox's own address. It said: %(said)s"
        ),
        "recipient": _("The server refuses the recipient (%(code)s): look at the address. It said: %(said)s"),
        "starttls": _("The server has no STARTTLS (%(code)s): choose TLS with port 465. It said: %(said)s"),
    }
    sentence = sentences.get(phase, _("The server refuses the mail (%(code)s). It said: %(said)s"))
    return Verdict("refused", sentence % values, code, str(code))
