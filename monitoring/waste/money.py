"""What idleness costs, and how much of that can still be avoided: by the lease's own prices, each currency by itself. Pure.

idle cost = Σ over quiet stretches of what the lease cost in them × quiet cards ÷ all its cards. What an hour costs follows
`fleet.leasing.costs`: a month's price is spread over the hours of that month, and what was paid once is no cost of idleness.
What is paid by the hour can be avoided from now on, less what goes on costing while the machine is stopped; what is paid in
advance is spent until it renews, and saves from that day on; of an owned machine only its power could be saved.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import models
from django.utils.translation import gettext_lazy as _

from fleet.enums import BilledMode, PriceUnit
from fleet.leasing.costs import Interval, Price, cost, rate
from fleet.providers.facts import PREPAID, Billing
from panel.core.money import Money, sums


class Avoidable(models.TextChoices):
    """When money that idleness costs can be saved."""

    NOW = "now", _("Avoidable now")
    AT_RENEWAL = "at_renewal", _("Spent until it renews")
    NEVER = "never", _("Owned")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which `quiet_cards` of the machine's `cards` had nothing to do."""

    started_at: datetime
    ended_at: datetime
    quiet_cards: int
    cards: int


@dataclass(frozen=True, slots=True)
class IdleCost:
    """What quiet stretches cost, by currency; the card-hours, and those of them for which no price is known."""

    totals: dict[str, Money]
    card_hours: Decimal
    unknown_card_hours: Decimal


def idle_cost(
    stretches: Iterable[Stretch],
    intervals: Sequence[Interval],
    prices: Sequence[Price],
    *,
    start: datetime,
    end: datetime,
) -> IdleCost:
    """Return what stretches of one lease cost within [start, end). Hours in which it was not billed cost nothing."""
    running = [interval for interval in intervals if interval.mode == BilledMode.FULL]
    lasting = [price for price in prices if price.unit != PriceUnit.ONCE]
    amounts: list[Money] = []
    hours = unknown = Decimal(0)
    for stretch in stretches:
        first, last = max(start, stretch.started_at), min(end, stretch.ended_at)
        if first >= last or not stretch.cards:
            continue
        spent = cost(running, lasting, start=first, end=last)
        hours += spent.hours * stretch.quiet_cards
        unknown += spent.unknown_hours * stretch.quiet_cards
        amounts += [money * stretch.quiet_cards / stretch.cards for money in spent.totals.values()]
    return IdleCost(sums(amounts), hours, unknown)


def avoidable(billing: Billing) -> Avoidable:
    """Return when a lease's idleness can be saved, by how it is paid for."""
    if billing == Billing.OWNED:
        return Avoidable.NEVER
    return Avoidable.AT_RENEWAL if billing in PREPAID else Avoidable.NOW


@dataclass(frozen=True, slots=True)
class Saving:
    """What each further idle hour would save, by currency: {} when nothing, None when that is not known."""

    by_ending: dict[str, Money] | None
    by_stopping: dict[str, Money] | None


def saving_per_hour(
    prices: Sequence[Price], *, billing: Billing, at: datetime, is_stop_saving: bool | None = None
) -> Saving:
    """Return what an hour less would save now. is_stop_saving: False where a stopped machine costs as much as before."""
    if avoidable(billing) != Avoidable.NOW:
        return Saving({}, {})
    running = rate(prices, BilledMode.FULL, at=at)
    if is_stop_saving is False:
        return Saving(running, {})
    stopped = rate(prices, BilledMode.STOPPED, at=at)
    if running is None or stopped is None:
        return Saving(running, None)
    kept = [Money(-money.amount, currency) for currency, money in stopped.items()]
    return Saving(running, sums([*running.values(), *kept]))
