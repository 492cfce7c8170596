"""What leases cost, read for many at once."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fleet.enums import BilledMode
from fleet.leasing.costs import Cost, cost, rate
from fleet.leasing.exchange import Joint, Rate, in_currency, joint
from fleet.leasing.terms import LONGEST_STEP, Billed, billed
from fleet.models import BilledInterval, ExchangeRate, Lease, LeasePrice
from panel.core.money import Money, sums


def month_start(at: datetime) -> datetime:
    """Return the beginning of the month in which a time lies (UTC)."""
    at = at.astimezone(UTC)
    return datetime(at.year, at.month, 1, tzinfo=UTC)


def _prices(lease_ids: Collection[int]) -> dict[int, list[LeasePrice]]:
    prices: dict[int, list[LeasePrice]] = defaultdict(list)
    for row in LeasePrice.objects.filter(lease__in=lease_ids):
        prices[row.lease_id].append(row)
    return prices


def lease_costs(*, lease_ids: Collection[int], start: datetime, end: datetime) -> dict[int, Cost]:
    """Return what each lease cost within [start, end): two queries however many."""
    ledgers = lease_ledgers(lease_ids=lease_ids, start=start, end=end)
    return {pk: cost(each.intervals, each.prices, start=start, end=end) for pk, each in ledgers.items()}


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a lease's sums are made of: its stretches as they are billed, and its prices."""

    intervals: list[Billed]
    prices: list[LeasePrice]


def lease_ledgers(*, lease_ids: Collection[int], start: datetime, end: datetime) -> dict[int, Ledger]:
    """Return what each lease was billed for within [start, end), and its prices: two queries however many."""
    prices, intervals = _prices(lease_ids), _billed(lease_ids, start, end)
    return {pk: Ledger(intervals[pk], prices[pk]) for pk in lease_ids}


def _billed(lease_ids: Collection[int], start: datetime, end: datetime) -> dict[int, list[Billed]]:
    """Return each lease's stretches as its provider counts them; those that are rounded up reach beyond their end."""
    rows: dict[int, list[BilledInterval]] = defaultdict(list)
    found = BilledInterval.objects.filter(lease__in=lease_ids, started_at__lt=end)
    for row in found.exclude(ended_at__lte=start - LONGEST_STEP):
        rows[row.lease_id].append(row)
    return defaultdict(list, {pk: list(billed(each)) for pk, each in rows.items()})


def lease_rates(*, leases: Sequence[Lease], at: datetime) -> dict[int, dict[str, Money] | None]:
    """Return what an hour of each lease costs now, by currency; None when its price is not known, {} when it is over."""
    prices = _prices([lease.pk for lease in leases])
    running = BilledInterval.objects.filter(lease__in=leases, ended_at=None)
    modes = dict(running.values_list("lease_id", "mode"))
    return {
        lease.pk: rate(prices[lease.pk], BilledMode(modes[lease.pk]), at=at) if lease.pk in modes else {}
        for lease in leases
    }


def rates_known(*, at: datetime) -> list[Rate]:
    """Return every exchange rate that people entered for a day up to this one (UTC), the newest first."""
    rows = ExchangeRate.objects.filter(effective_on__lte=at.astimezone(UTC).date()).order_by("-effective_on", "-pk")
    return [Rate(row.base, row.quote, row.rate, row.effective_on) for row in rows]


def joint_total(totals: Mapping[str, Money], *, at: datetime) -> Joint | None:
    """Return sums of several currencies as one by the rates of a day; None for one currency, or where rates are missing.

    One query, and none for one currency.
    """
    return joint(totals, rates_known(at=at), on=at.astimezone(UTC).date()) if len(totals) > 1 else None


def total_in(totals: Mapping[str, Money], currency: str, *, at: datetime) -> Joint:
    """Return sums as one of a currency, with what no rate reaches. One query where another currency is among them."""
    rates = rates_known(at=at) if set(totals) - {currency} else []
    return in_currency(totals, currency, rates, on=at.astimezone(UTC).date())


def accounts_spent(*, account_ids: Collection[int], at: datetime) -> dict[int, dict[str, Money]]:
    """Return what each account's leases cost since the month began, by currency: three queries however many."""
    start = month_start(at)
    leases = Lease.objects.filter(account__in=account_ids).exclude(ended_at__lte=start)
    owners = dict(leases.values_list("pk", "account_id"))
    costs = lease_costs(lease_ids=list(owners), start=start, end=at)
    spent: dict[int, list[Money]] = {pk: [] for pk in account_ids}
    for lease_id, each in costs.items():
        spent[owners[lease_id]] += each.totals.values()
    return {pk: sums(amounts) for pk, amounts in spent.items()}


def account_spent(*, account_id: int, at: datetime) -> dict[str, Money]:
    """Return what an account's leases cost since the month began, by currency."""
    return accounts_spent(account_ids=[account_id], at=at)[account_id]
