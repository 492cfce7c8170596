"""What a lease costs: billed intervals × prices in force, exact, each currency by itself.

cost = Σ over billed intervals of Σ over price parts of hours in both × hourly rate; a part for a month is spread over the
hours of that very month (Asia/Shanghai and every other zone agree to within the month's ends: months are UTC here), a part
paid once counts where it begins. While a machine is stopped, its price for that and what runs all the same count. Where
no price is known, hours count as unknown, never as zero.
"""

import calendar
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, Protocol

from fleet.enums import BilledMode, PriceComponent, PriceUnit
from panel.core.money import Money, sums

HOUR: Final = timedelta(hours=1)
_MICROSECONDS_OF_HOUR: Final = Decimal(3_600_000_000)
_FIXED_HOURS: Final = {PriceUnit.HOUR: 1, PriceUnit.DAY: 24, PriceUnit.WEEK: 168}


class Interval(Protocol):
    """A stretch in which a lease was billed in one mode; ended_at None while it runs."""

    mode: str
    started_at: datetime
    ended_at: datetime | None


class Price(Protocol):
    """A part of a price while it is in force."""

    component: str
    amount: Decimal
    currency: str
    unit: str
    runs_while_stopped: bool
    effective_from: datetime
    effective_to: datetime | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What was spent: a sum for each currency, the hours billed, and those of them without a known price."""

    totals: dict[str, Money]
    hours: Decimal
    unknown_hours: Decimal


def hours_between(start: datetime, end: datetime) -> Decimal:
    """Return the hours that pass from start to end (23 or 25 on days on which clocks change), 0 when end is not later."""
    return _microseconds(start, end) / _MICROSECONDS_OF_HOUR


def _microseconds(start: datetime, end: datetime) -> Decimal:
    passed = end.astimezone(UTC) - start.astimezone(UTC)  # within one zone Python subtracts what clocks show
    return Decimal(max(passed // timedelta(microseconds=1), 0))


def _price_of(amount: Decimal, unit_hours: int, start: datetime, end: datetime) -> Decimal:
    """Return what the time costs at so much for so many hours; divided once and last, so that round sums stay round."""
    return amount * _microseconds(start, end) / (unit_hours * _MICROSECONDS_OF_HOUR)


def hours_of_month(at: datetime) -> int:
    """Return the hours of the month in which a time lies (UTC): 672 to 744."""
    at = at.astimezone(UTC)
    return 24 * calendar.monthrange(at.year, at.month)[1]


def hours_of_year(at: datetime) -> int:
    """Return the hours of the year in which a time lies (UTC): 8,760 or 8,784."""
    return 24 * (366 if calendar.isleap(at.astimezone(UTC).year) else 365)


def hourly(amount: Decimal, unit: str, at: datetime) -> Decimal:
    """Return what one hour at this time costs at so much a unit; 0 for what is paid once."""
    if unit == PriceUnit.ONCE:
        return Decimal(0)
    return amount / _hours_of(unit, at)


def _hours_of(unit: str, at: datetime) -> int:
    """Return how many hours a lasting unit has at this time."""
    if unit == PriceUnit.MONTH:
        return hours_of_month(at)
    return hours_of_year(at) if unit == PriceUnit.YEAR else _FIXED_HOURS[PriceUnit(unit)]


def _months(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Cut [start, end) at the beginnings of months (UTC)."""
    while start < end:
        at = start.astimezone(UTC)
        year, month = (at.year, at.month + 1) if at.month < 12 else (at.year + 1, 1)
        cut = min(end, datetime(year, month, 1, tzinfo=UTC))
        yield start, cut
        start = cut


def _part_cost(price: Price, start: datetime, end: datetime) -> Decimal:
    """Return what one part costs from start to end, within which it is in force."""
    if price.unit == PriceUnit.ONCE:
        return price.amount if start == price.effective_from else Decimal(0)
    spans = [(start, end)] if price.unit in _FIXED_HOURS else _months(start, end)
    costs = (_price_of(price.amount, _hours_of(price.unit, first), first, last) for first, last in spans)
    return sum(costs, Decimal(0))


def _in_force(price: Price, start: datetime, end: datetime) -> tuple[datetime, datetime] | None:
    first, last = max(start, price.effective_from), min(end, price.effective_to or end)
    return (first, last) if first < last else None


def _counts(price: Price, mode: str) -> bool:
    """Say whether a part is paid in this mode; STOPPED is the whole price of a machine that is stopped."""
    if price.component == PriceComponent.STOPPED:
        return mode == BilledMode.STOPPED
    return mode == BilledMode.FULL or price.runs_while_stopped


def _known_hours(prices: Sequence[Price], mode: str, start: datetime, end: datetime) -> Decimal:
    """Return the hours of [start, end) for which the part that decides has a price."""
    deciding = [
        price
        for price in prices
        if (price.component == PriceComponent.COMPUTE if mode == BilledMode.FULL else _counts(price, mode))
    ]
    spans = sorted(span for price in deciding if (span := _in_force(price, start, end)) is not None)
    known, reached = Decimal(0), start
    for first, last in spans:
        known += hours_between(max(first, reached), last)
        reached = max(reached, last)
    return known


def cost(intervals: Iterable[Interval], prices: Sequence[Price], *, start: datetime, end: datetime) -> Cost:
    """Return what a lease cost within [start, end). end: at the latest now, since an open interval counts up to it."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    amounts: list[Money] = []
    hours = unknown = Decimal(0)
    for interval in intervals:
        first, last = max(start, interval.started_at), min(end, interval.ended_at or end)
        if first >= last:
            continue
        hours += hours_between(first, last)
        unknown += hours_between(first, last) - _known_hours(prices, interval.mode, first, last)
        for price in prices:
            span = _in_force(price, first, last) if _counts(price, interval.mode) else None
            if span is not None:
                amounts.append(Money(_part_cost(price, *span), price.currency))
    return Cost(sums(amounts), hours, unknown)


def rate(prices: Sequence[Price], mode: str, *, at: datetime) -> dict[str, Money] | None:
    """Return what an hour costs at this time in this mode, by currency; None when the deciding price is not known."""
    valid = [price for price in prices if _in_force(price, at, at + timedelta(microseconds=1)) is not None]
    if not _known_hours(valid, mode, at, at + HOUR):
        return None
    return sums(Money(hourly(price.amount, price.unit, at), price.currency) for price in valid if _counts(price, mode))
