"""Feishu's and Lark's group robots: the signature in the body, rich text without markup, errors inside HTTP 200."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from monitoring.notifiers.base import Window, check_url, http_verdict, json_body, parsed, plain_text
from monitoring.notifiers.message import Message
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.text import cut_bytes
from monitoring.notifiers.verdict import Answer, Request, Verdict

LARGEST_TEXT: Final = 16_000  # of 20 KB for the whole body
TOO_FAST: Final = frozenset({"11232", "11233"})
MOST_LINKS: Final = 10


def sign(secret: str, timestamp: int) -> str:
    """Return the body's `sign`: HMAC-SHA256 of nothing with `s\\nsecret` as key, base64."""
    return base64.b64encode(hmac.new(f"{timestamp}\n{secret}".encode(), b"", hashlib.sha256).digest()).decode()


class Feishu:
    """A robot in a group. keyword: one of the words that its security settings want to see."""

    windows = (Window(5, 1.0), Window(100, 60.0))
    settings = frozenset({"keyword"})
    secrets = frozenset({"url", "secret"})

    def check(self, settings: Mapping[str, Any], secrets: Mapping[str, str]) -> None:  # noqa: ARG002 (the protocol's)
        """Raise SettingsRefused for what cannot work."""
        check_url(secrets)

    def build(
        self, message: Message, settings: Mapping[str, Any], secrets: Mapping[str, str], *, at: datetime
    ) -> Request:
        """Return the request; text stands in elements of their own, where no markup counts."""
        text = plain_text(message, limit=LARGEST_TEXT, keyword=settings.get("keyword", ""))
        lines: list[list[dict[str, str]]] = [[{"tag": "text", "text": line}] for line in text.split("\n")[1:]]
        links = [link for section in message.sections for link in section.links][:MOST_LINKS]
        lines += [[{"tag": "a", "text": label, "href": address}] for label, address in links]
        language = "zh_cn" if message.language.startswith("zh") else "en_us"
        title = cut_bytes(text.split("\n")[0], 300)
        body: dict[str, Any] = {"msg_type": "post", "content": {"post": {language: {"title": title, "content": lines}}}}
        if secrets.get("secret"):
            timestamp = int(at.timestamp())
            body = {"timestamp": str(timestamp), "sign": sign(secrets["secret"], timestamp), **body}
        return Request(secrets["url"], json_body(body), {"content-type": "application/json"})

    def interpret(self, answer: Answer) -> Verdict:
        """Only `code` 0 (or `StatusCode` 0 of older robots) is success."""
        told = parsed(answer)
        code = ""
        if isinstance(told, dict):
            code = str(told.get("code", told.get("StatusCode", "")))
        if code == "0" and 200 <= answer.status_code < 300:
            return Verdict("delivered", status_code=answer.status_code, error_code=code)
        said = str(told.get("msg", told.get("StatusMessage", "")))[:200] if isinstance(told, dict) else ""
        if code in TOO_FAST:
            sentence = _("Feishu refuses more than 5 messages in a second or 100 in a minute.")
            return Verdict("retry", sentence, answer.status_code, code, retry_after_seconds=60.0)
        known = {
            "19001": _("Feishu does not know this robot: copy its address again. It said: %(said)s"),
            "19021": _(
                "Feishu refuses the signature: copy the robot's secret again, and look at this machine's clock."
            ),
            "19022": _("Feishu refuses this panel's address: add it to the robot's list. It said: %(said)s"),
            "19024": _("Feishu misses its keyword: enter one of the robot's keywords here. It said: %(said)s"),
            "19036": _("Feishu refuses the message as too long: %(said)s"),
            "9499": _("Feishu refuses the message as malformed: %(said)s"),
        }
        if code in known:
            return Verdict("refused", known[code] % {"said": said}, answer.status_code, code)
        trouble = http_verdict(answer)
        if trouble is not None:
            return trouble
        if not code:
            return Verdict("retry", _("The answer is not one of Feishu's; is the address right?"), answer.status_code)
        sentence = _("Feishu answered with error %(code)s: %(said)s") % {"code": code, "said": said}
        return Verdict("retry", sentence, answer.status_code, code)
