"""Reading values out of providers' JSON: absent, null or odd becomes empty or None, never an exception and never 0."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from panel.core.money import Money, MoneyError

_BIGGEST: Final = Decimal(2**63 - 1)  # a whole number of many digits takes minutes to write out, and no column holds it
_YEARS: Final = range(1990, 2200)  # outside of them a time is a way to say that there is none


def text(body: Any, key: str) -> str:
    """Return a member as text without blanks around it; "" when it is absent or no plain value."""
    value = body.get(key) if isinstance(body, Mapping) else None
    return str(value).strip()[:500] if isinstance(value, str | int | Decimal) and not isinstance(value, bool) else ""


def whole(value: Any) -> int | None:
    """Return a whole number, also from text or a decimal without a fraction; None otherwise."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = Decimal(str(value).strip())
    except ArithmeticError:
        return None
    is_whole = number.is_finite() and abs(number) <= _BIGGEST and number == number.to_integral_value()
    return int(number) if is_whole else None


def number(value: Any) -> Decimal | None:
    """Return a number that a column holds, also from text; None otherwise."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = Decimal(str(value).strip())
    except ArithmeticError:
        return None
    return found if found.is_finite() and abs(found) <= _BIGGEST else None


def money(value: Any, currency: str, *, divisor: int = 1) -> Money | None:
    """Return an amount in units of 1/divisor of the currency; None when it is absent or no amount."""
    if not isinstance(value, str | int | Decimal) or isinstance(value, bool):
        return None
    try:
        return Money.of(value, currency, divisor=divisor)
    except MoneyError:
        return None


def time(value: Any) -> datetime | None:
    """Return a time from ISO 8601 text (no offset means UTC) or from seconds since 1970; None when it is neither.

    Also None for a time of no use: vendors write 0001-01-01 and 9999-12-31 for none at all.
    """
    found = _time(value)
    return found if found is not None and found.year in _YEARS else None


def _time(value: Any) -> datetime | None:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(float(value), tz=UTC) if value > 0 else None
        except (OverflowError, OSError, ValueError):
            return None
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
