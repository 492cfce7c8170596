"""What a stranger's machine sends, made fit for the database: no NUL, no overlong text, no numbers that overflow."""

import ipaddress
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from fleet.providers.base import Machine
from fleet.providers.errors import NotUnderstood
from panel.core.money import Money

_BIGINT: Final = 2**63 - 1
# Control characters, and halves of surrogate pairs, which JSON can write and UTF-8 cannot.
_CONTROLS: Final = dict.fromkeys([*range(32), 127, *range(0xD800, 0xE000)])
_ID_LENGTH: Final = 200
HIGHEST_TERM: Final = Decimal(10) ** 10
HIGHEST_PRICE: Final = Decimal(1_000_000)  # for an hour of a machine; an answer beyond it is broken in any currency


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


def clean_price(price: Money | None, *, highest: Decimal = HIGHEST_PRICE) -> Money | None:
    """Return what an hour costs as a provider tells it, None for what cannot be: then it is not known, and not negative."""
    return price if price is not None and 0 <= price.amount <= highest else None


def clean_machine(machine: Machine) -> Machine:
    """Return a machine as it can be kept. Raises NotUnderstood when it has no id by which it could be known again."""
    if not machine.external_id or machine.external_id != clean_text(machine.external_id, _ID_LENGTH):
        raise NotUnderstood("The provider tells of a machine without an id that can be kept.")
    return replace(
        machine,
        name=clean_text(machine.name, 200),
        raw_status=clean_text(machine.raw_status, 100),
        region=clean_text(machine.region, 64),
        price_per_hour=clean_price(machine.price_per_hour),
        price_stopped_per_hour=clean_price(machine.price_stopped_per_hour),
    )
