"""Secrets taken out of what is logged, audited or reported: by the name of the key, and by the shape of our own tokens."""

import re
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

HIDDEN: Final = "[redacted]"
MAX_DEPTH: Final = 12
PLAIN: Final = (bool, int, float, Decimal, date, time, timedelta, UUID)

# A key is secret when one of its words is one of these, or when it holds one of the phrases.
SECRET_WORDS: Final = frozenset(
    {
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "secrets",
        "token",
        "tokens",
        "authorization",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "apikey",
        "csrfmiddlewaretoken",
        "sessionid",
        "csrftoken",
        "otp",
        "totp",
    }
)
SECRET_PHRASES: Final = (
    "api_key",
    "access_key",
    "private_key",
    "encryption_key",
    "session_key",
    "signing_key",
    "license_key",
)
# Names that hold such a word and are no secret: what a token is called, when it ends, counts of an engine's tokens.
HARMLESS_KEYS: Final = frozenset(
    {
        "token_id",
        "token_name",
        "token_prefix",
        "token_kind",
        "token_scope",
        "token_used_at",
        "token_expires_at",
        "join_token_id",
        "tokens_per_second",
        "prompt_tokens",
        "completion_tokens",
        "token_count",
        "has_password",
        "password_changed_at",
    }
)

# Every repetition has a bound, so that hostile text costs no more than its length.
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TOKEN: Final = re.compile(r"\b(fd[tja]_[a-z0-9]{8})_[A-Za-z0-9_-]{20,}")
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_URL_PASSWORD: Final = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://[^\s:/@]{0,200}):[^\s/@]{1,500}@")
_ASSIGNMENT: Final = re.compile(
    r"""(?ix)
    ( ["']? (?<![\w-]) (?: [\w-]{0,64} (?:password|passwd|passphrase|secret|api_?key|access_?key|private_?key) [\w-]{0,64}
              | (?:[\w-]{0,64}[_-])? token | sessionid | csrftoken | csrfmiddlewaretoken ) \b ["']?
      \s* [=:] \s* )
    ( "[^"]*" | '[^']*' | [^\s,;&)}\]]+ )
    """
)


def is_secret_key(key: str) -> bool:
    """Say whether a value under this key must not be shown."""
    words = [word.lower() for word in _WORD.findall(key)]
    name = "_".join(words)
    if name in HARMLESS_KEYS:
        return False
    return not SECRET_WORDS.isdisjoint(words) or any(phrase in name for phrase in SECRET_PHRASES)


def redact_text(text: str) -> str:
    """Return the text without our own tokens, bearer credentials, passwords in addresses and `password=…` pairs."""
    text = _TOKEN.sub(rf"\1_{HIDDEN}", text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
    return _ASSIGNMENT.sub(rf"\1{HIDDEN}", text)


def redact(value: Any, *, depth: int = 0) -> Any:
    """Return a copy in which every value under a secret key is hidden, at any depth.

    Numbers and times pass unchanged; any other object becomes its text, which is searched for secrets too.
    """
    if depth > MAX_DEPTH:
        return "[too deep]"
    if isinstance(value, Mapping):
        return {key: _redact_item(key, item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, depth=depth + 1) for item in value]
    if value is None or isinstance(value, PLAIN):
        return value
    return redact_text(value.decode(errors="replace") if isinstance(value, bytes) else str(value))


def _redact_item(key: Any, item: Any, depth: int) -> Any:
    if isinstance(key, str) and is_secret_key(key) and item not in (None, ""):
        return HIDDEN
    return redact(item, depth=depth + 1)
