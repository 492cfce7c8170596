"""The mark by which gateways know the panel's own probes: only who was given it can have requests left out of load."""

import hashlib
import hmac
from typing import Final

from django.conf import settings

_PURPOSE: Final = b"fleetdeck probe mark\0"
_DIGITS: Final = 32


def probe_mark(kind: str, subject_id: int) -> str:
    """Return the mark of one subject (`endpoint`, its id): the same on every call, and another one for each subject."""
    said = _PURPOSE + f"{kind}:{subject_id}".encode()
    return hmac.new(settings.SECRET_KEY.encode(), said, hashlib.sha256).hexdigest()[:_DIGITS]
