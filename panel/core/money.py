"""Money: a decimal amount with its currency. Amounts of different currencies are never added."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, Self

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
MAX_AMOUNT: Final = Decimal(10) ** 12
PLACES: Final = Decimal("0.000001")  # what the database keeps: a GPU-second at a few cents an hour still shows


class MoneyError(ValueError):
    """An amount that is no number, a currency that is no ISO 4217 code, or two currencies in one sum."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in one currency (ISO 4217). Never made from a float: what a float says is not what was meant."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        """Refuse what cannot be an amount of money. Raises MoneyError."""
        if not isinstance(self.amount, Decimal) or not self.amount.is_finite() or abs(self.amount) > MAX_AMOUNT:
            raise MoneyError(f"{self.amount!r} is not an amount of money")
        if not _CURRENCY.fullmatch(self.currency):
            raise MoneyError(f"{self.currency!r} is not an ISO 4217 currency")

    @classmethod
    def of(cls, amount: Decimal | int | str, currency: str, *, divisor: int = 1) -> Self:
        """Read an amount as a vendor writes it, in units of 1/divisor of the currency (100 for cents). Raises MoneyError.

        Text may carry blanks around it and commas between thousands.
        """
        if isinstance(amount, bool | float):
            raise MoneyError(f"{amount!r} is not an exact amount of money")
        text = amount.strip().replace(",", "") if isinstance(amount, str) else amount
        try:
            return cls(Decimal(text) / divisor, currency)
        except InvalidOperation as error:
            raise MoneyError(f"{amount!r} is not an amount of money") from error

    def __add__(self, other: "Money") -> "Money":
        """Add an amount of the same currency. Raises MoneyError."""
        if other.currency != self.currency:
            raise MoneyError(f"{self.currency} and {other.currency} cannot be added without a rate")
        return Money(self.amount + other.amount, self.currency)

    def __mul__(self, factor: Decimal | int) -> "Money":
        """Return the amount times a number."""
        return Money(self.amount * factor, self.currency)

    def __truediv__(self, divisor: Decimal | int) -> "Money":
        """Return the amount over a number."""
        return Money(self.amount / divisor, self.currency)

    def rounded(self, places: Decimal = PLACES) -> "Money":
        """Return the amount as the database keeps it (six decimal places), half to even."""
        return Money(self.amount.quantize(places), self.currency)

    def __str__(self) -> str:
        return f"{self.amount.normalize():f} {self.currency}"


def sums(amounts: Iterable[Money]) -> dict[str, Money]:
    """Return one sum for each currency, by currency."""
    totals: dict[str, Money] = {}
    for money in amounts:
        known = totals.get(money.currency)
        totals[money.currency] = money if known is None else known + money
    return totals
