"""WeCom's group robots: the key stands in the address, plain text within 2,048 bytes, errors inside HTTP 200."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from monitoring.notifiers.base import Window, check_url, errcode_of, http_verdict, json_body, plain_text
from monitoring.notifiers.message import Message
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.text import without_mentions
from monitoring.notifiers.verdict import Answer, Request, Verdict

LARGEST_TEXT: Final = 2_048
TOO_FAST: Final = "45009"
BUSY: Final = "-1"


class WeCom:
    """A robot in a group."""

    windows = (Window(20, 60.0),)
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
        """Return the request."""
        room = LARGEST_TEXT
        text = plain_text(message, limit=room)
        while (
            len(harmless := without_mentions(text).encode()) > LARGEST_TEXT
        ):  # what makes mentions harmless takes room too
            room -= len(harmless) - LARGEST_TEXT
            text = plain_text(message, limit=room)
        body = {"msgtype": "text", "text": {"content": without_mentions(text)}}
        return Request(secrets["url"], json_body(body), {"content-type": "application/json"})

    def interpret(self, answer: Answer) -> Verdict:
        """Only `errcode` 0 is success: 40058 (too long) comes with HTTP 200."""
        trouble = http_verdict(answer)
        if trouble is not None:
            return trouble
        code, said = errcode_of(answer)
        if code == "0":
            return Verdict("delivered", status_code=answer.status_code, error_code=code)
        if code == TOO_FAST:
            sentence = _("WeCom refuses more than 20 messages in a minute.")
            return Verdict("retry", sentence, answer.status_code, code, retry_after_seconds=60.0)
        known = {
            "93000": _("WeCom does not know this robot: copy its address again. It said: %(said)s"),
            "40058": _("WeCom refuses the message as too long or malformed: %(said)s"),
        }
        if code in known:
            return Verdict("refused", known[code] % {"said": said}, answer.status_code, code)
        if not code:
            return Verdict("retry", _("The answer is not one of WeCom's; is the address right?"), answer.status_code)
        sentence = _("WeCom answered with error %(code)s: %(said)s") % {"code": code, "said": said}
        return Verdict("retry", sentence, answer.status_code, code)
