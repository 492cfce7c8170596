"""Sums of several currencies as one, by rates that people entered with their day. Pure; without a rate they stay apart.

A rate holds from its day on until a later one of the same two currencies; it works both ways round.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from panel.core.money import Money


@dataclass(frozen=True, slots=True)
class Rate:
    """One `base` is `rate` `quote` from `effective_on` on."""

    base: str
    quote: str
    rate: Decimal
    effective_on: date

    def __str__(self) -> str:
        return f"1 {self.base} = {self.rate.normalize():f} {self.quote} ({self.effective_on.isoformat()})"

    def convert(self, money: Money) -> Money:
        """Return an amount of one of the two currencies in the other."""
        if money.currency == self.base:
            return Money(money.amount * self.rate, self.quote)
        return Money(money.amount / self.rate, self.base)


@dataclass(frozen=True, slots=True)
class Joint:
    """A total in one currency, the rates that it rests on, and what no rate reaches and is therefore not in it."""

    total: Money
    rates: tuple[Rate, ...] = ()
    missing: tuple[Money, ...] = ()


def rate_for(rates: Iterable[Rate], one: str, other: str, *, on: date) -> Rate | None:
    """Return the rate between two currencies that holds on a day; None when none was entered by then."""
    found = [rate for rate in rates if {rate.base, rate.quote} == {one, other} and rate.effective_on <= on]
    return max(found, key=lambda rate: rate.effective_on, default=None)


def in_currency(totals: Mapping[str, Money], currency: str, rates: Sequence[Rate], *, on: date) -> Joint:
    """Return amounts of several currencies as one total of `currency`, by the rates that hold on a day."""
    total, used, missing = Money(Decimal(0), currency), [], []
    for money in totals.values():
        if money.currency == currency:
            total += money
        elif (rate := rate_for(rates, money.currency, currency, on=on)) is not None:
            total += rate.convert(money)
            used.append(rate)
        else:
            missing.append(money)
    return Joint(total, tuple(used), tuple(missing))


def joint(totals: Mapping[str, Money], rates: Sequence[Rate], *, on: date) -> Joint | None:
    """Return amounts of two or more currencies as one total; None where rates do not reach all of them.

    It is in the currency that the newest rates lead to: the `quote` of what people entered last, where that reaches all.
    """
    if len(totals) < 2:
        return None
    newest = sorted(rates, key=lambda rate: rate.effective_on, reverse=True)
    for currency in dict.fromkeys([*(rate.quote for rate in newest), *(rate.base for rate in newest)]):
        found = in_currency(totals, currency, rates, on=on)
        if not found.missing:
            return found
    return None
