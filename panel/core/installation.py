"""The name of this installation, by which it tells its own machines at a provider from those of others."""

import secrets
from typing import Final

from panel.core.models import Installation

ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
LENGTH: Final = 8


def install_id() -> str:
    """Return this installation's id, eight small letters and digits; it is drawn once and kept in the database."""
    row, _ = Installation.objects.get_or_create(
        pk=1, defaults={"name": "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))}
    )
    return row.name
