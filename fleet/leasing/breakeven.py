"""Monthly, hourly or spot: which would have been cheapest for the hours really billed. Pure.

break-even hours = monthly price ÷ hourly price; a month is cheaper from so many billed hours on. Billed hours are those in
which the machine was there and not stopped, never those in which its GPUs worked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

from fleet.providers.base import Billing
from panel.core.money import Money

WINDOW: Final = timedelta(days=30)
HOURS_OF_WINDOW: Final = Decimal(720)
COMPARED: Final = (Billing.HOURLY, Billing.MONTHLY, Billing.SPOT)


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to have paid for the window: what it would have cost."""

    billing: Billing
    cost: Money


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The comparison for one lease.

    used_hours: billed in full within the last 30 days. break_even_hours: None without both prices. choices: cheapest first.
    saving: by the cheapest instead of the present way, None when there is nothing to save or the present price is unknown.
    """

    used_hours: Decimal
    break_even_hours: Decimal | None
    choices: tuple[Choice, ...]
    saving: Money | None


def break_even(
    *, used_hours: Decimal, present: Billing, prices: Mapping[Billing, Money], observed_hours: Decimal = HOURS_OF_WINDOW
) -> BreakEven:
    """Compare ways of paying for `used_hours` out of `observed_hours` of the window.

    prices: an hour for HOURLY and SPOT, a month (720 hours) for MONTHLY, all of one currency. A lease that is younger than
    the window is compared over the hours since it began: the month's price counts by that share.
    """
    currencies = {price.currency for price in prices.values()}
    if len(currencies) > 1:
        raise ValueError("prices in several currencies cannot be compared")
    costs = {}
    for billing in COMPARED:
        if (price := prices.get(billing)) is not None:
            is_month = billing == Billing.MONTHLY
            costs[billing] = price * (observed_hours / HOURS_OF_WINDOW) if is_month else price * used_hours
    choices = tuple(
        Choice(billing, costs[billing]) for billing in sorted(costs, key=lambda billing: costs[billing].amount)
    )
    hourly, monthly = prices.get(Billing.HOURLY), prices.get(Billing.MONTHLY)
    hours = monthly.amount / hourly.amount if hourly is not None and monthly is not None and hourly.amount else None
    saving = None
    if present in costs and choices and choices[0].cost.amount < costs[present].amount:
        saving = Money(costs[present].amount - choices[0].cost.amount, choices[0].cost.currency)
    return BreakEven(used_hours, hours, choices, saving)
