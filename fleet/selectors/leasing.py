"""Accounts, offers, leases, operations and drift, filtered: what the API and pages show."""

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal
from statistics import median
from typing import Final

from django.db.models import (
    Count,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    Func,
    Prefetch,
    Q,
    QuerySet,
)

from fleet.enums import BilledMode, LeaseState, OperationKind, OperationState
from fleet.leasing.breakeven import WINDOW, BreakEven, break_even
from fleet.leasing.costs import hours_between
from fleet.models import BilledInterval, Drift, ExchangeRate, Lease, LeasePrice, Offer, Operation, ProviderAccount
from fleet.providers.base import Billing
from panel.core import clock
from panel.core.money import Money

USUAL_OF_LAST: Final = 20


def account_list(*, kind: Collection[str] = (), health: Collection[str] = ()) -> QuerySet[ProviderAccount]:
    """Return accounts that were not removed, with counts of their open leases and open differences."""
    accounts = ProviderAccount.objects.filter(removed_at=None)
    if kind:
        accounts = accounts.filter(kind__in=kind)
    if health:
        accounts = accounts.filter(health__in=health)
    is_open = Q(drifts__resolved_at=None, drifts__isnull=False)
    return accounts.annotate(
        leases_open=Count("leases", filter=Q(leases__ended_at=None), distinct=True),
        drifts_open=Count("drifts", filter=is_open, distinct=True),
    )


def offer_list(
    *,
    account: int | None = None,
    model: str = "",
    min_memory_gb: Decimal | None = None,
    max_price_per_gpu: Decimal | None = None,
    currency: str = "",
    region: str = "",
    billing: Collection[str] = (),
    gpu_count: int | None = None,
    is_in_stock: bool | None = None,
) -> QuerySet[Offer]:
    """Return offers of all accounts, each with its price per GPU and hour (null where the vendor tells none).

    model: part of a GPU's name. min_memory_gb: of one card. max_price_per_gpu: an hour, in the offer's own currency.
    """
    offers = Offer.objects.select_related("account").filter(account__removed_at=None)
    offers = offers.annotate(price_per_gpu=F("price_per_hour") / F("gpu_count"))
    if account is not None:
        offers = offers.filter(account=account)
    if model:
        offers = offers.filter(Q(gpu_model__icontains=model) | Q(raw_gpu__icontains=model))
    if min_memory_gb is not None:
        offers = offers.filter(gpu_memory_bytes__gte=int(min_memory_gb * 1024**3))
    if max_price_per_gpu is not None:
        offers = offers.filter(price_per_gpu__lte=max_price_per_gpu)
    for name, value in (("currency", currency.upper()), ("region", region)):
        if value:
            offers = offers.filter(**{name: value})
    if billing:
        offers = offers.filter(billing__in=billing)
    if gpu_count is not None:
        offers = offers.filter(gpu_count=gpu_count)
    if is_in_stock is not None:
        offers = offers.exclude(stock="none") if is_in_stock else offers.filter(stock="none")
    return offers


def with_prices(leases: QuerySet[Lease]) -> QuerySet[Lease]:
    """Read along the prices that are in force or to come (`prices_in_force`, `prices_coming`). One query more."""
    prices = LeasePrice.objects.not_over(clock.now()).order_by("component", "effective_from")
    return leases.prefetch_related(Prefetch("prices", queryset=prices, to_attr="prices_not_over"))


def lease_list(
    *,
    account: int | None = None,
    server: int | None = None,
    state: Collection[str] = (),
    billing: Collection[str] = (),
    origin: Collection[str] = (),
    is_open: bool | None = None,
    renews_before: datetime | None = None,
    search: str = "",
) -> QuerySet[Lease]:
    """Return leases with their account, server and prices; those that have ended too unless `is_open` says so."""
    leases = with_prices(Lease.objects.select_related("account", "server"))
    conditions = {"account": account, "server": server, "renews_at__lte": renews_before}
    leases = leases.filter(**{name: value for name, value in conditions.items() if value is not None})
    if is_open is not None:
        leases = leases.filter(ended_at__isnull=is_open)
    for name, values in (("state", state), ("billing", billing), ("origin", origin)):
        if values:
            leases = leases.filter(**{f"{name}__in": values})
    if search:
        fields = ("name", "external_id", "server__name", "region", "landlord")
        leases = leases.filter(Q(*((f"{field}__icontains", search) for field in fields), _connector=Q.OR))
    return leases


def operation_list(
    *,
    account: int | None = None,
    lease: int | None = None,
    server: int | None = None,
    kind: Collection[str] = (),
    state: Collection[str] = (),
    is_open: bool | None = None,
) -> QuerySet[Operation]:
    """Return operations with their account, lease and server."""
    operations = Operation.objects.select_related("account", "lease__server", "server")
    conditions = {"account": account, "lease": lease, "server": server}
    operations = operations.filter(**{name: value for name, value in conditions.items() if value is not None})
    for name, values in (("kind", kind), ("state", state)):
        if values:
            operations = operations.filter(**{f"{name}__in": values})
    return operations if is_open is None else operations.filter(ended_at__isnull=is_open)


def drift_list(
    *,
    now: datetime,
    account: int | None = None,
    kind: Collection[str] = (),
    is_open: bool | None = None,
    is_ignored: bool | None = None,
) -> QuerySet[Drift]:
    """Return differences with their account and lease. An ignored one is open and left out of sight until its time."""
    drifts = Drift.objects.select_related("account", "lease__server")
    if account is not None:
        drifts = drifts.filter(account=account)
    if kind:
        drifts = drifts.filter(kind__in=kind)
    if is_open is not None:
        drifts = drifts.filter(resolved_at__isnull=is_open)
    if is_ignored is not None:
        ignored = Q(ignored_until__gt=now)
        drifts = drifts.filter(ignored) if is_ignored else drifts.exclude(ignored)
    return drifts


def exchange_rate_list() -> QuerySet[ExchangeRate]:
    """Return the dated rates that people entered."""
    return ExchangeRate.objects.all()


def leases_unconfirmed() -> QuerySet[Lease]:
    """Return the leases whose end was asked for and not confirmed in time: they are still billed."""
    return lease_list(is_open=True, state=[LeaseState.TERMINATION_UNCONFIRMED])


def leases_renewing(*, at: datetime) -> QuerySet[Lease]:
    """Return open leases whose paid term ends within their reminder days, or has ended, the soonest first."""
    reminder = Func(F("reminder_days"), template="make_interval(days => %(expressions)s)", output_field=DurationField())
    reminded_from = ExpressionWrapper(F("renews_at") - reminder, output_field=DateTimeField())
    open_leases = Lease.objects.select_related("server").filter(ended_at=None, renews_at__isnull=False)
    return open_leases.annotate(reminded_from=reminded_from).filter(reminded_from__lte=at).order_by("renews_at", "pk")


def usual_seconds(*, kind: OperationKind, account_kind: str) -> float | None:
    """Return how long such an operation usually takes at this provider, the median of the last 20 that succeeded."""
    done = Operation.objects.filter(kind=kind, account__kind=account_kind, state=OperationState.SUCCEEDED)
    times = done.order_by("-pk").values_list("created_at", "ended_at")[:USUAL_OF_LAST]
    seconds = [(ended - created).total_seconds() for created, ended in times if ended is not None]
    return median(seconds) if seconds else None


def lease_break_even(lease: Lease, *, at: datetime) -> BreakEven | None:
    """Compare ways of paying for a lease by its billed hours of the last 30 days; None where no price can be compared.

    Prices of the other ways come from the account's offers of the same GPUs, else from none.
    """
    start = max(at - WINDOW, lease.requested_at)
    rows = BilledInterval.objects.filter(lease=lease, mode=BilledMode.FULL, started_at__lt=at)
    used = sum(
        (
            hours_between(max(row.started_at, start), min(row.ended_at or at, at))
            for row in rows.exclude(ended_at__lte=start)
        ),
        Decimal(0),
    )
    prices = _comparable_prices(lease, at)
    if not prices:
        return None
    return break_even(
        used_hours=used,
        present=Billing(lease.billing),
        prices=prices,
        observed_hours=min(hours_between(start, at), Decimal(720)),
    )


def _comparable_prices(lease: Lease, at: datetime) -> dict[Billing, Money]:
    """Return the lease's own price and those of the same machine paid in other ways, of one currency."""
    own = LeasePrice.objects.in_force(at).filter(lease=lease, component="compute").first()
    prices: dict[Billing, Money] = {}
    if own is not None and (own.unit, lease.billing) in {
        ("hour", Billing.HOURLY),
        ("hour", Billing.SPOT),
        ("month", Billing.MONTHLY),
    }:
        prices[Billing(lease.billing)] = Money(own.amount, own.currency)
    spec = lease.spec
    offers = Offer.objects.filter(
        account=lease.account, gpu_model=spec.get("gpu_model") or "-", gpu_count=spec.get("gpu_count") or 0
    )
    if prices:
        offers = offers.filter(currency=next(iter(prices.values())).currency)
    for offer in offers.order_by("price_per_hour"):
        billing = Billing(offer.billing)
        amount = offer.price_per_term if billing == Billing.MONTHLY else offer.price_per_hour
        if billing in {Billing.HOURLY, Billing.MONTHLY, Billing.SPOT} and amount is not None:
            known = next(iter(prices.values()), None)
            if known is None or known.currency == offer.currency:
                prices.setdefault(billing, Money(amount, offer.currency))
    return prices
