"""Secrets cut out of what is kept of a conversation."""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

from panel.core.redaction import HIDDEN, redact_text

SHORTEST: Final = 4
LONGEST_CONVERSATION: Final = 20_000


def shown_url(url: str) -> str:
    """Return scheme and host of an address: what comes behind them is what makes it secret."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", f":{parts.port}" if parts.port else ""
    except ValueError:
        return HIDDEN
    path = f"/{HIDDEN}" if parts.path.strip("/") or parts.query else "/"
    return urlunsplit((parts.scheme, f"[{host}]{port}" if ":" in host else f"{host}{port}", path, "", ""))


def _forms(secret: str) -> Iterable[str]:
    yield secret
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield base64.b64encode(secret.encode()).decode().rstrip("=")


def secret_values(secrets: Mapping[str, str]) -> list[str]:
    """Return every text that must not be shown, longest first: the secrets, and the parts of an address that are secret."""
    found: set[str] = set()
    for value in secrets.values():
        if not value:
            continue
        found.update(_forms(value))
        if value.startswith(("http://", "https://")):
            parts = urlsplit(value)
            found.update(piece for piece in re.split(r"[/&=?]", f"{parts.path}&{parts.query}") if len(piece) >= 16)
    return sorted((text for text in found if len(text) >= SHORTEST), key=len, reverse=True)


def without_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """Return the text without the secrets, in whatever form they were sent, cut to what is kept."""
    for value in secret_values(secrets):
        text = text.replace(value, HIDDEN)
    text = redact_text(text).replace("\x00", "")
    return text if len(text) <= LONGEST_CONVERSATION else text[:LONGEST_CONVERSATION] + "\n…"
