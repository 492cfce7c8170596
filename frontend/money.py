"""Money as people read it: the currency's sign, thousands apart, more than cents only where a price has them. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from panel.core.money import Money

# Signs that mean one currency to the people who use this panel; every other currency is written as its code.
SIGNS: Final = {"CNY": "¥", "USD": "$", "EUR": "€", "GBP": "£"}
SMALL: Final = 10  # below it a price keeps what it has below a cent, to a millionth: that adds up over the hours
CENT: Final = Decimal("0.01")
FINEST: Final = Decimal("0.000001")
USUAL: Final = Decimal("0.0001")


def _signed(text: str, currency: str) -> str:
    sign = SIGNS.get(currency)
    return f"{sign}{text}" if sign else f"{currency}\N{NO-BREAK SPACE}{text}"


def price_text(amount: Decimal, currency: str) -> str:
    """Return a price: "¥1.75", "$24.50", "$0.0125"."""
    return _signed(_digits(amount), currency)


def _digits(amount: Decimal) -> str:
    """Return two decimals, and up to four of a small price that has them; six below a cent, where four may say nothing."""
    if abs(amount) >= SMALL:
        return f"{amount:,.2f}"
    fine = amount.quantize(USUAL if abs(amount) >= CENT else FINEST)
    if fine == fine.quantize(CENT):
        return f"{fine:,.2f}"
    return f"{fine.normalize():,f}"


def sum_text(money: Money) -> str:
    """Return a sum of money: "¥1,204.50"; what is above nothing and below a cent is "<¥0.01"."""
    if 0 < money.amount < Decimal("0.01"):
        return f"<{_signed('0.01', money.currency)}"
    return _signed(f"{money.amount:,.2f}", money.currency)


def rates_text(rates: Mapping[str, Money]) -> str:
    """Return prices of several currencies side by side, never added: "¥12.40 + $1.20"."""
    return " + ".join(price_text(rates[code].amount, code) for code in sorted(rates))


def sums_text(totals: Mapping[str, Money]) -> str:
    """Return sums of several currencies side by side, never added."""
    return " + ".join(sum_text(totals[code]) for code in sorted(totals))
