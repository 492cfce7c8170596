"""What an order would cost and what stands against it, before anybody confirms."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from django.utils.translation import gettext as _

from fleet.leasing.budget import budget_hours
from fleet.leasing.exchange import Joint, Rate
from fleet.models import Lease, Offer, ProviderAccount
from fleet.providers.base import Billing, CanOrder, StopEffect
from fleet.providers.registry import provider_type
from fleet.reasons import REASON_WORDS, Reason
from fleet.selectors.costs import account_spent, lease_rates, total_in
from fleet.selectors.leasing import offer_list
from fleet.services.accounts import account_provider
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound
from panel.core.money import Money, sums

HOURS_A_MONTH: Final = 730
WARN_SHARE: Final = Decimal("0.8")
CENT: Final = Decimal("0.01")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What an order would do and cost, before it is confirmed.

    price_per_month: 730 hours of the hourly price, or the term's own price by the month; None when not told. spent: of the
    account since the month began. budget_hours: in how many hours this machine, beside what runs already, uses the budget up;
    None when it lasts until the month ends. used: of the budget, in its currency; exchange_rates: those that it, or the
    comparison with a highest price, rests on. refusals: typed reasons that stand against it; warnings: sentences.
    """

    offer: Offer
    price_per_hour: Money | None
    price_per_month: Money | None
    stop_effect: StopEffect
    spent: dict[str, Money]
    budget: Money | None
    used: Joint | None
    budget_hours: int | None
    exchange_rates: tuple[Rate, ...]
    refusals: tuple[Reason, ...]
    warnings: tuple[str, ...]
    runs_startup_script: bool


def _offer(account_id: int, offer_id: int) -> Offer:
    offer = offer_list(account=account_id).filter(pk=offer_id).first()
    if offer is None:
        raise NotFound(str(REASON_WORDS[Reason.NO_OFFER].sentence), code="no_offer")
    return offer


def order_plan(*, account_id: int, offer_id: int, max_price_per_hour: Decimal | None = None) -> Plan:
    """Say what ordering this offer would cost and what stands against it. Raises NotFound or InvalidInput."""
    offer = _offer(account_id, offer_id)
    account = offer.account
    if not issubclass(provider_type(account.kind), CanOrder):
        raise InvalidInput(str(REASON_WORDS[Reason.NOT_SUPPORTED].sentence), code="not_supported")
    provider = account_provider(account)
    assert isinstance(provider, CanOrder)  # noqa: S101 (its class does)
    price = Money(offer.price_per_hour, offer.currency) if offer.price_per_hour is not None else None
    at = now()
    spent = account_spent(account_id=account.pk, at=at)
    budget = _budget_of(account, price, spent, at)
    guard = _in_account_currency(account, price, at)
    lasts = _budget_hours(account, budget, at) if budget is not None else None
    warned = _warnings(offer, price, budget, lasts, installs_agent=provider.installs_agent())
    rates = (*(budget.used.rates if budget else ()), *(budget.price_rates if budget else ()), *guard.rates)
    return Plan(
        offer=offer,
        price_per_hour=price,
        price_per_month=price * HOURS_A_MONTH if price is not None else None,
        stop_effect=provider.stop_effect(Billing(offer.billing)),
        spent=spent,
        budget=budget.limit if budget is not None else None,
        used=budget.used if budget is not None else None,
        budget_hours=lasts,
        exchange_rates=tuple(dict.fromkeys(rates)),
        refusals=tuple(_refusals(offer, price, guard, budget, max_price_per_hour)),
        warnings=(*warned, *_foreign_warnings(account, guard, budget)),
        runs_startup_script=provider.installs_agent(),
    )


@dataclass(frozen=True, slots=True)
class _Budget:
    """A month's budget: its limit, what is used of it, and what an hour of this offer is in its currency (None: no rate)."""

    limit: Money
    used: Joint
    price: Money | None
    price_rates: tuple[Rate, ...] = ()


def _in_account_currency(account: ProviderAccount, price: Money | None, at: datetime) -> Joint:
    """Return a price in the account's currency, in which its guards are; `missing` holds it where no rate reaches it."""
    return total_in({price.currency: price} if price is not None else {}, account.currency, at=at)


def _budget_of(
    account: ProviderAccount, price: Money | None, spent: Mapping[str, Money], at: datetime
) -> _Budget | None:
    if account.monthly_budget is None:
        return None
    hour = _in_account_currency(account, price, at)
    return _Budget(
        limit=Money(account.monthly_budget, account.currency),
        used=total_in(spent, account.currency, at=at),
        price=hour.total if price is not None and not hour.missing else None,
        price_rates=hour.rates,
    )


def _refusals(
    offer: Offer, price: Money | None, guard: Joint, budget: _Budget | None, max_price_per_hour: Decimal | None
) -> list[Reason]:
    """Return what stands against an order. guard: the price in the account's currency; what has no rate is in `missing`."""
    refusals = []
    limit = offer.account.max_price_per_hour
    if price is None and (limit is not None or max_price_per_hour is not None):
        refusals.append(Reason.PRICE_UNKNOWN)
    elif price is not None:
        is_dear = max_price_per_hour is not None and price.amount > max_price_per_hour
        # Of a price in a currency without a rate it cannot be said that it keeps below the account's highest.
        if is_dear or (limit is not None and (guard.missing or guard.total.amount > limit)):
            refusals.append(Reason.PRICE_ABOVE_MAX)
    if budget is not None and 0 < budget.used.total.amount >= budget.limit.amount:
        refusals.append(Reason.BUDGET_CAP)
    if offer.stock == "none":
        refusals.append(Reason.NO_CAPACITY)
    return refusals


def _budget_hours(account: ProviderAccount, budget: _Budget, at: datetime) -> int | None:
    """Return in how many whole hours the budget is used up with this machine and those that run in the account already."""
    if budget.price is None:
        return None
    running = lease_rates(leases=list(Lease.objects.filter(account=account, ended_at=None).only("pk")), at=at)
    hourly = sums(money for rate in running.values() if rate for money in rate.values())
    beside = total_in(hourly, account.currency, at=at).total
    used, rate = budget.used.total.amount, (budget.price + beside).amount
    hours = budget_hours(budget=budget.limit.amount, used=used, rate=rate, at=at)
    return None if hours is None else int(hours)


def _warnings(
    offer: Offer, price: Money | None, budget: _Budget | None, lasts: int | None, *, installs_agent: bool
) -> list[str]:
    warnings = []
    if price is None:
        warnings.append(_("The provider tells no price for it. What it costs is seen on the machine."))
    if budget is not None and budget.limit.amount * WARN_SHARE <= budget.used.total.amount < budget.limit.amount:
        share = int(budget.used.total.amount * 100 / budget.limit.amount)
        warnings.append(_("%(share)s %% of this month's budget is used.") % {"share": share})
    if lasts:
        warnings.append(_("With it this month's budget is used up in %(hours)s h.") % {"hours": lasts})
    account = offer.account
    if price is not None and account.balance is not None and account.currency == price.currency:
        hours = int(account.balance / price.amount) if price.amount else 0
        if hours < 24:
            warnings.append(_("The account's balance lasts for %(hours)s hours of it.") % {"hours": hours})
    if not installs_agent:
        warnings.append(_("The provider runs no start-up script: run the join line on the machine yourself."))
    return warnings


def _foreign_warnings(account: ProviderAccount, guard: Joint, budget: _Budget | None) -> list[str]:
    """Say which guard does not hold because its currency is another and no rate was entered, and which rates are used."""
    warnings = []
    words = {"currency": account.currency, "others": ", ".join(sorted({money.currency for money in guard.missing}))}
    if guard.missing and account.max_price_per_hour is not None:
        warnings.append(
            _(
                "The account's highest price is in %(currency)s and the offer in %(others)s: without an exchange rate they "
                "cannot be compared, so it is refused. Enter a rate, or change the highest price."
            )
            % words
        )
    if budget is None:
        return warnings
    if guard.missing:
        warnings.append(
            _(
                "The budget is in %(currency)s and the offer in %(others)s: without an exchange rate what it costs does not "
                "count towards the budget. Enter a rate for it to."
            )
            % words
        )
    if budget.used.missing:
        amounts = ", ".join(str(money.rounded(CENT)) for money in budget.used.missing)
        warnings.append(
            _(
                "Not counted in the budget, which is in %(currency)s: %(amounts)s spent this month. Enter an exchange rate."
            )
            % {"currency": account.currency, "amounts": amounts}
        )
    rates = dict.fromkeys((*budget.used.rates, *budget.price_rates))
    if rates:
        listed = ", ".join(str(rate) for rate in rates)
        warnings.append(_("The budget counts other currencies by these rates: %(rates)s.") % {"rates": listed})
    return warnings
