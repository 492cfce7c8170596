"""What every kind of channel says of itself."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from monitoring.notifiers.message import Message
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.phrases import translated
from monitoring.notifiers.text import cut_bytes
from monitoring.notifiers.verdict import Answer, Request, Verdict

_HOST: Final = re.compile(r"[A-Za-z0-9._:\[\]-]{1,253}")
LONGEST_URL: Final = 2_000


class SettingsRefused(ValueError):  # noqa: N818 (what happened, as in panel.core.errors)
    """A setting that cannot be used; field: its name."""

    def __init__(self, sentence: str, *, field: str) -> None:
        super().__init__(sentence)
        self.sentence = translated(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class Window:
    """At most `count` messages within any `seconds`."""

    count: int
    seconds: float


class Notifier(Protocol):
    """One kind of channel that is reached over HTTP."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """How many messages it may be sent."""

    @property
    def settings(self) -> frozenset[str]:
        """Names of what may be shown."""

    @property
    def secrets(self) -> frozenset[str]:
        """Names of what is never shown again."""

    def check(self, settings: Mapping[str, Any], secrets: Mapping[str, str]) -> None:
        """Raise SettingsRefused for what cannot work."""

    def build(
        self, message: Message, settings: Mapping[str, Any], secrets: Mapping[str, str], *, at: datetime
    ) -> Request:
        """Return the request that carries the message."""

    def interpret(self, answer: Answer) -> Verdict:
        """Say what the answer means."""


def check_url(secrets: Mapping[str, str]) -> None:
    """Raise SettingsRefused unless `url` is an http(s) address."""
    url = secrets.get("url", "")
    try:
        parts = urlsplit(url)
        is_usable = (
            parts.scheme in {"http", "https"} and bool(_HOST.fullmatch(parts.netloc)) and len(url) <= LONGEST_URL
        )
    except ValueError:
        is_usable = False
    if not is_usable or any(character.isspace() or ord(character) < 32 for character in url):
        raise SettingsRefused(
            _("Give the whole address that the robot's or receiver's page shows, beginning with https://."), field="url"
        )


def json_body(value: Any) -> bytes:
    """Return JSON as it goes over the wire."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def parsed(answer: Answer) -> Any:
    """Return the answer's JSON, or None when it is none."""
    try:
        return json.loads(answer.body)
    except ValueError:
        return None


def http_verdict(answer: Answer) -> Verdict | None:
    """Return what the status alone says: trouble, or None for 2xx."""
    code = answer.status_code
    if 200 <= code < 300:
        return None
    if 300 <= code < 400:
        sentence = _("It answered %(code)s, a redirect, which is not followed: give the address it leads to.") % {
            "code": code
        }
        return Verdict("refused", sentence, code)
    sentence = _("It answered with HTTP %(code)s.") % {"code": code}
    return Verdict("retry", sentence, code, retry_after_seconds=retry_after(answer))


def retry_after(answer: Answer) -> float | None:
    """Return the seconds that the receiver asks us to wait, an hour at most; None when it says nothing usable."""
    told = next((value for name, value in answer.headers.items() if name.lower() == "retry-after"), "")
    return min(float(told), 3600.0) if told.isascii() and told.isdecimal() and len(told) < 9 else None


def plain_text(message: Message, *, limit: int, keyword: str = "") -> str:
    """Return the message as lines within `limit` bytes of UTF-8; its last line, a link, stays whole when the rest is cut.

    keyword: a word that the robot wants to see; put in front when the text does not hold it.
    """
    lines = [message.title]
    for section in message.sections:
        if len(message.sections) > 1:
            lines.append(f"• {section.word}: {section.subject}")
        lines.append(section.first_line)
        lines += [f"{label}: {value}" for label, value in section.rows]
    lines += message.notes
    if keyword and keyword not in "\n".join(lines):
        lines[0] = f"{keyword} {lines[0]}"
    links = [address for section in message.sections for _label, address in section.links[:1]]
    last = f"\n{links[0]}" if links and len(links[0].encode()) < limit // 2 else ""
    return cut_bytes("\n".join(lines), limit - len(last.encode())) + last


def cut_payload(payload: Mapping[str, Any], *, limit: int) -> bytes:
    """Return the payload as JSON of at most `limit` bytes: facts go first, then items from the end, which are counted."""
    body = json_body(payload)
    if len(body) <= limit:
        return body
    data = {**payload["data"], "items": [{**item, "facts": {}, "is_cut": True} for item in payload["data"]["items"]]}
    total = len(data["items"])
    while True:
        data["omitted"] = total - len(data["items"])
        body = json_body({**payload, "data": data})
        if len(body) <= limit or not data["items"]:
            return body
        data["items"] = data["items"][: len(data["items"]) * 3 // 4]


def errcode_of(answer: Answer) -> tuple[str, str]:
    """Return `errcode` and `errmsg` of a robot's answer, each empty when it has none."""
    told = parsed(answer)
    if not isinstance(told, dict):
        return "", ""
    return str(told.get("errcode", "")), str(told.get("errmsg", ""))[:200]
