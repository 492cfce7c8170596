"""Slack's incoming webhooks and what is compatible with them (Mattermost, Rocket.Chat)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from monitoring.notifiers.base import Window, check_url, http_verdict, json_body, parsed
from monitoring.notifiers.message import Message, Section
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.text import cut_bytes, without_mentions
from monitoring.notifiers.verdict import Answer, Request, Verdict

COLOURS: Final = {"critical": "#98101A", "warning": "#C07A00", "info": "#2F86E0"}
OVER: Final = "#0A7F66"
MOST_SECTIONS: Final = 20
LARGEST_VALUE: Final = 2_000


def escape(text: str) -> str:
    """Return text in which neither links nor mentions are markup (Slack's own rule), nor names call anybody elsewhere."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return without_mentions(cut_bytes(plain, LARGEST_VALUE))


def _attachment(section: Section, colour: str) -> dict[str, Any]:
    # addresses are ours, yet a label may hold `|` and `>`
    links = "  ".join(
        f"<{address.replace('|', '%7C').replace('>', '%3E')}|{escape(label).replace('|', '/')}>"
        for label, address in section.links
    )
    return {
        "color": colour,
        "fallback": escape(section.first_line),
        "title": escape(f"{section.word}: {section.subject}"),
        "text": escape(section.first_line) + (f"\n{links}" if links else ""),
        "fields": [
            {"title": escape(label), "value": escape(value), "short": len(value) < 40} for label, value in section.rows
        ],
        "mrkdwn_in": [],
    }


class Slack:
    """An incoming webhook."""

    windows = (Window(1, 1.0), Window(30, 60.0))
    settings: frozenset[str] = frozenset()
    secrets = frozenset({"url"})

    def check(self, settings: Mapping[str, Any], secrets: Mapping[str, str]) -> None:  # noqa: ARG002 (the protocol's)
        """Raise SettingsRefused for what cannot work."""
        check_url(secrets)

    def build(
        self,
        message: Message,
        settings: Mapping[str, Any],  # noqa: ARG002 (the protocol's)
        secrets: Mapping[str, str],
        *,
        at: datetime,  # noqa: ARG002 (the protocol's)
    ) -> Request:
        """Return the request: one attachment for each topic."""
        colour = OVER if message.kind in {"resolved", "recovered"} else COLOURS.get(message.severity, COLOURS["info"])
        text = "\n".join((message.title, *message.notes))
        body = {
            "text": escape(text),
            "mrkdwn": False,
            "attachments": [_attachment(section, colour) for section in message.sections[:MOST_SECTIONS]],
        }
        return Request(secrets["url"], json_body(body), {"content-type": "application/json"})

    def interpret(self, answer: Answer) -> Verdict:
        """2xx with `ok`, or with nothing, is success; `{"ok": false}` and any other text are not."""
        said = answer.body[:200].decode(errors="replace").strip()
        if answer.status_code in {403, 404, 410}:
            sentence = _("The address is not known any more: make a new webhook there. It said: %(said)s") % {
                "said": said
            }
            return Verdict("refused", sentence, answer.status_code, said[:64])
        if answer.status_code == 400:
            sentence = _("The message was refused: %(said)s") % {"said": said}
            return Verdict("refused", sentence, 400, said[:64])
        trouble = http_verdict(answer)
        if trouble is not None:
            return trouble
        told = parsed(answer)
        is_fine = said in {"", "ok"} or (isinstance(told, dict) and (told.get("ok") or told.get("success")) is True)
        if is_fine:
            return Verdict("delivered", status_code=answer.status_code)
        sentence = _("It answered with 200 and yet an error: %(said)s") % {"said": said}
        return Verdict("retry", sentence, answer.status_code, said[:64])
