"""Money as people read it: the currency's sign, thousands apart, three decimals for small prices. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from panel.core.money import Money

# Signs that mean one currency to the people who use this panel; every other currency is written as its code.
SIGNS: Final = {"CNY": "¥", "USD": "$", "EUR": "€", "GBP": "£"}
SMALL: Final = 10  # below it a price has three decimals: a tenth of a cent an hour adds up


def _signed(text: str, currency: str) -> str:
    sign = SIGNS.get(currency)
    return f"{sign}{text}" if sign else f"{currency}\N{NO-BREAK SPACE}{text}"


def price_text(amount: Decimal, currency: str) -> str:
    """Return a price: "¥1.980", "$24.50"."""
    return _signed(f"{amount:,.3f}" if abs(amount) < SMALL else f"{amount:,.2f}", currency)


def sum_text(money: Money) -> str:
    """Return a sum of money: "¥1,204.50"; what is above nothing and below a cent is "<¥0.01"."""
    if 0 < money.amount < Decimal("0.01"):
        return f"<{_signed('0.01', money.currency)}"
    return _signed(f"{money.amount:,.2f}", money.currency)


def rates_text(rates: Mapping[str, Money]) -> str:
    """Return prices of several currencies side by side, never added: "¥12.40 + $1.200"."""
    return " + ".join(price_text(rates[code].amount, code) for code in sorted(rates))


def sums_text(totals: Mapping[str, Money]) -> str:
    """Return sums of several currencies side by side, never added."""
    return " + ".join(sum_text(totals[code]) for code in sorted(totals))
