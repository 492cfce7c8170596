"""Callers' keys as the pages show them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from endpoints.models import ApiKey


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key. state: live, held (over its tokens), expired or revoked."""

    key: ApiKey
    state: str

    @property
    def dialog_id(self) -> str:
        """Return the id of the dialog that revokes it."""
        return f"revoke-{self.key.pk}"


def _state(key: ApiKey, at: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= at:
        return "expired"
    return "held" if key.held_until is not None and key.held_until > at else "live"


def key_rows(keys: Iterable[ApiKey], at: datetime) -> list[KeyRow]:
    """Return keys with how they stand; those that open something first."""
    rows = [KeyRow(key, _state(key, at)) for key in keys]
    return sorted(rows, key=lambda row: row.state in {"expired", "revoked"})


def opens(key: ApiKey, name: str, at: datetime) -> bool:
    """Say whether a key opens an endpoint now."""
    return _state(key, at) in {"live", "held"} and (not key.endpoints or name in key.endpoints)
