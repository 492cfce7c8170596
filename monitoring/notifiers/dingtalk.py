"""DingTalk's group robots: a signed address, plain text, errors inside HTTP 200."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote_plus

from monitoring.notifiers.base import Window, check_url, errcode_of, http_verdict, json_body, plain_text
from monitoring.notifiers.message import Message
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.text import without_mentions
from monitoring.notifiers.verdict import Answer, Request, Verdict

LARGEST_TEXT: Final = 18_000  # of 20,000 bytes for the whole body
MUTED_SECONDS: Final = 600.0
TOO_FAST: Final = "130101"
BUSY: Final = frozenset({"-1", "410100"})


def sign(secret: str, timestamp_ms: int) -> str:
    """Return the query's `sign`: HMAC-SHA256 with the secret as key over `ms\\nsecret`, base64, quoted."""
    digest = hmac.new(secret.encode(), f"{timestamp_ms}\n{secret}".encode(), hashlib.sha256).digest()
    return quote_plus(base64.b64encode(digest))


class DingTalk:
    """A robot in a group. keyword: one of the words that its security settings want to see."""

    windows = (Window(20, 60.0),)
    settings = frozenset({"keyword"})
    secrets = frozenset({"url", "secret"})

    def check(self, settings: Mapping[str, Any], secrets: Mapping[str, str]) -> None:  # noqa: ARG002 (the protocol's)
        """Raise SettingsRefused for what cannot work."""
        check_url(secrets)

    def build(
        self, message: Message, settings: Mapping[str, Any], secrets: Mapping[str, str], *, at: datetime
    ) -> Request:
        """Return the request, signed when the robot has a secret."""
        url = secrets["url"]
        if secrets.get("secret"):
            timestamp_ms = int(at.timestamp() * 1000)
            joint = "&" if "?" in url else "?"
            url = f"{url}{joint}timestamp={timestamp_ms}&sign={sign(secrets['secret'], timestamp_ms)}"
        text = without_mentions(plain_text(message, limit=LARGEST_TEXT, keyword=settings.get("keyword", "")))
        return Request(
            url, json_body({"msgtype": "text", "text": {"content": text}}), {"content-type": "application/json"}
        )

    def interpret(self, answer: Answer) -> Verdict:
        """Only `errcode` 0 is success."""
        trouble = http_verdict(answer)
        if trouble is not None:
            return trouble
        code, said = errcode_of(answer)
        if code == "0":
            return Verdict("delivered", status_code=answer.status_code, error_code=code)
        if code == TOO_FAST:
            sentence = _("DingTalk mutes the robot for ten minutes: it was sent more than 20 messages in a minute.")
            return Verdict("retry", sentence, answer.status_code, code, retry_after_seconds=MUTED_SECONDS)
        known = {
            "310000": _("DingTalk refuses by the robot's security settings (keyword, signature or address): %(said)s"),
            "300001": _("DingTalk does not know this robot: copy its address again. It said: %(said)s"),
            "300005": _("DingTalk does not know this robot: copy its address again. It said: %(said)s"),
            "400101": _("DingTalk does not know this robot: copy its address again. It said: %(said)s"),
            "460101": _("DingTalk refuses the message as too long: %(said)s"),
        }
        if code in known:
            return Verdict("refused", known[code] % {"said": said}, answer.status_code, code)
        if not code:
            return Verdict("retry", _("The answer is not one of DingTalk's; is the address right?"), answer.status_code)
        sentence = _("DingTalk answered with error %(code)s: %(said)s") % {"code": code, "said": said}
        return Verdict("retry", sentence, answer.status_code, code)
