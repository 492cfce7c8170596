"""Bearer tokens: how they are made, recognised and compared.

A token reads `<kind>_<prefix>_<secret>`: the kind says what it opens (`fdt` the API, `fdj` a join, `fda` an agent, `fdk`
endpoints), the prefix finds its row and names it in lists, the secret is 256 random bits. Only the SHA-256 of the whole
token is stored: a secret of that length needs no slow hash.
"""

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass, field
from typing import Final

API_TOKEN: Final = "fdt"  # noqa: S105 (a kind)
JOIN_TOKEN: Final = "fdj"  # noqa: S105 (a kind)
AGENT_TOKEN: Final = "fda"  # noqa: S105 (a kind)
ENDPOINT_KEY: Final = "fdk"
KINDS: Final = (API_TOKEN, JOIN_TOKEN, AGENT_TOKEN, ENDPOINT_KEY)

PREFIX_LENGTH: Final = 8
SECRET_BYTES: Final = 32
_ALPHABET: Final = string.ascii_lowercase + string.digits
_SHAPE: Final = re.compile(r"(fdt|fdj|fda|fdk)_([a-z0-9]{8})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token just made. `token` is shown once and kept nowhere; its repr hides it."""

    token: str = field(repr=False)
    prefix: str
    token_hash: str


def hash_token(token: str) -> str:
    """Return the SHA-256 of the whole token, as 64 hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def issue(kind: str) -> IssuedToken:
    """Make a token of one of `KINDS`. Raises ValueError for another kind."""
    if kind not in KINDS:
        raise ValueError(f"Unknown kind of token: {kind!r}")
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(PREFIX_LENGTH))
    token = f"{kind}_{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
    return IssuedToken(token=token, prefix=prefix, token_hash=hash_token(token))


def parse(token: str, *, kind: str | None = None) -> str | None:
    """Return the prefix of a token that has the right shape (and kind, when one is asked for), else None."""
    match = _SHAPE.fullmatch(token)
    if match is None or (kind is not None and match[1] != kind):
        return None
    return match[2]


def matches(token: str, token_hash: str) -> bool:
    """Say whether the token is the one whose hash is stored, in constant time."""
    return hmac.compare_digest(hash_token(token), token_hash)
