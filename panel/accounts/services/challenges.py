"""Challenges of passkeys: kept in Valkey for as long as somebody may take to answer, and given out to one answer only."""

from typing import Final

from django.core.cache import cache

from panel.core.rates import digest

LIFETIME_SECONDS: Final = 300


def _key(purpose: str, whose: str) -> str:
    return f"passkey-challenge:{purpose}:{digest(whose)}"


def challenge_keep(*, purpose: str, whose: str, challenge: bytes) -> None:
    """Keep the challenge just given out; an earlier one of the same purpose is void. whose: a session's key, or a person."""
    cache.set(_key(purpose, whose), challenge, LIFETIME_SECONDS)


def challenge_take(*, purpose: str, whose: str) -> bytes | None:
    """Return the challenge and forget it; None when there is none, it is too old, or another answer took it."""
    key = _key(purpose, whose)
    challenge: bytes | None = cache.get(key)
    return challenge if challenge is not None and cache.delete(key) else None
