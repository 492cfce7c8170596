"""Webhooks for programs, signed as Standard Webhooks says: id, time and body under HMAC-SHA256."""

import base64
import binascii
import hashlib
import hmac
import secrets as random
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from monitoring.notifiers.base import SettingsRefused, Window, check_url, cut_payload, http_verdict
from monitoring.notifiers.message import Message
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.verdict import Answer, Request, Verdict

PREFIX: Final = "whsec_"
SHORTEST_KEY, LONGEST_KEY = 24, 64
LARGEST_BODY: Final = 20_000


def new_signing_secret() -> str:
    """Return a fresh secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(random.token_bytes(32)).decode()


def signing_key(secret: str) -> bytes:
    """Return the bytes of a secret. Raises SettingsRefused."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise SettingsRefused(
            _("A signing secret reads whsec_ and then 24 to 64 bytes in base64; leave it empty to have one made."),
            field="signing_secret",
        )
    return key


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return `v1,<base64>` of HMAC-SHA256 over `id.timestamp.body` (Standard Webhooks 1.0)."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(signing_key(secret), signed, hashlib.sha256).digest()).decode()


class Webhook:
    """A program's address. previous_secret signs as well while receivers change over, until `previous_until` (ISO 8601)."""

    windows = (Window(60, 60.0),)
    settings = frozenset({"previous_until"})
    secrets = frozenset({"url", "signing_secret", "previous_secret"})

    def check(self, settings: Mapping[str, Any], secrets: Mapping[str, str]) -> None:  # noqa: ARG002 (the protocol's)
        """Raise SettingsRefused for what cannot work."""
        check_url(secrets)
        signing_key(secrets.get("signing_secret", ""))

    def build(
        self, message: Message, settings: Mapping[str, Any], secrets: Mapping[str, str], *, at: datetime
    ) -> Request:
        """Return the signed request; its id is the message's key, the same for every try."""
        body = cut_payload(message.payload, limit=LARGEST_BODY)
        message_id, timestamp = f"msg_{message.key}", int(at.timestamp())
        signing = [secrets["signing_secret"]]
        until = settings.get("previous_until", "")
        if secrets.get("previous_secret") and until and at < datetime.fromisoformat(until):
            signing.append(secrets["previous_secret"])
        headers = {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(signature(each, message_id, timestamp, body) for each in signing),
        }
        return Request(secrets["url"], body, headers)

    def interpret(self, answer: Answer) -> Verdict:
        """2xx is success, 410 ends the channel, everything else is tried again."""
        if answer.status_code == 410:
            return Verdict("gone", _("It answered 410: the receiver wants no more messages."), 410)
        return http_verdict(answer) or Verdict("delivered", status_code=answer.status_code)
