"""What a stranger's machine sends, made fit for the database: no NUL, no overlong text, no numbers that overflow."""

import ipaddress
import math
from typing import Any, Final

_BIGINT: Final = 2**63 - 1
_CONTROLS: Final = dict.fromkeys([*range(32), 127])


def clean_text(value: str, limit: int) -> str:
    """Return the text without control characters, cut to `limit` characters."""
    return value.translate(_CONTROLS)[:limit].strip()


def clean_address(address: str | None) -> str | None:
    """Return the IP address, None for what is none (a Unix socket has no address)."""
    try:
        return str(ipaddress.ip_address(address or ""))
    except ValueError:
        return None


def clean_integer(value: int | None) -> int | None:
    """Return the number when a bigint column can hold it and it is not negative, else None (no reading)."""
    return value if value is not None and 0 <= value <= _BIGINT else None


def clean_json(value: Any) -> Any:
    """Return JSON-ready data that Postgres accepts; what it cannot hold becomes None."""
    if isinstance(value, str):
        return value.translate(_CONTROLS)
    if isinstance(value, dict):
        return {clean_json(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    is_storable = value is None or (isinstance(value, int | float) and math.isfinite(value) and abs(value) <= _BIGINT)
    return value if is_storable else None
