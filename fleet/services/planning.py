"""What an order would cost and what stands against it, before anybody confirms."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from django.utils.translation import gettext as _

from fleet.leasing.budget import budget_hours
from fleet.models import Lease, Offer
from fleet.providers.base import Billing, CanOrder, StopEffect
from fleet.providers.registry import provider_type
from fleet.reasons import REASON_WORDS, Reason
from fleet.selectors.costs import account_spent, lease_rates
from fleet.services.accounts import account_provider
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound
from panel.core.money import Money

HOURS_A_MONTH: Final = 730
WARN_SHARE: Final = Decimal("0.8")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What an order would do and cost, before it is confirmed.

    price_per_month: 730 hours of the hourly price, or the term's own price by the month; None when not told. spent: of the
    account since the month began. budget_hours: in how many hours this machine, beside what runs already, uses the budget up;
    None when it lasts until the month ends. refusals: typed reasons that stand against it; warnings: sentences.
    """

    offer: Offer
    price_per_hour: Money | None
    price_per_month: Money | None
    stop_effect: StopEffect
    spent: dict[str, Money]
    budget: Money | None
    budget_hours: int | None
    refusals: tuple[Reason, ...]
    warnings: tuple[str, ...]
    runs_startup_script: bool


def _offer(account_id: int, offer_id: int) -> Offer:
    offer = Offer.objects.select_related("account").filter(pk=offer_id, account_id=account_id).first()
    if offer is None or offer.account.removed_at is not None:
        raise NotFound(str(REASON_WORDS[Reason.NO_OFFER].sentence), code="no_offer")
    return offer


def order_plan(*, account_id: int, offer_id: int, max_price_per_hour: Decimal | None = None) -> Plan:
    """Say what ordering this offer would cost and what stands against it. Raises NotFound or InvalidInput."""
    offer = _offer(account_id, offer_id)
    account = offer.account
    kind = provider_type(account.kind)
    if not issubclass(kind, CanOrder):
        raise InvalidInput(str(REASON_WORDS[Reason.NOT_SUPPORTED].sentence), code="not_supported")
    price = Money(offer.price_per_hour, offer.currency) if offer.price_per_hour is not None else None
    at = now()
    spent = account_spent(account_id=account.pk, at=at)
    budget = Money(account.monthly_budget, account.currency) if account.monthly_budget is not None else None
    lasts = _budget_hours(offer, price, spent, budget, at)
    return Plan(
        offer=offer,
        price_per_hour=price,
        price_per_month=price * HOURS_A_MONTH if price is not None else None,
        stop_effect=account_provider(account).stop_effect(Billing(offer.billing)),
        spent=spent,
        budget=budget,
        budget_hours=lasts,
        refusals=tuple(_refusals(offer, price, spent, budget, max_price_per_hour)),
        warnings=tuple(_warnings(offer, price, spent, budget, lasts)),
        runs_startup_script=kind.runs_startup_script,
    )


def _refusals(
    offer: Offer,
    price: Money | None,
    spent: Mapping[str, Money],
    budget: Money | None,
    max_price_per_hour: Decimal | None,
) -> list[Reason]:
    refusals = []
    account = offer.account
    limits = [limit for limit in (max_price_per_hour, account.max_price_per_hour) if limit is not None]
    # The account's guard is in its own currency: of a price in another one it cannot be said that it is kept.
    is_foreign = account.max_price_per_hour is not None and offer.currency != account.currency
    if price is not None and limits and (is_foreign or price.amount > min(limits)):
        refusals.append(Reason.PRICE_ABOVE_MAX)
    if budget is not None and (used := spent.get(budget.currency)) is not None and used.amount >= budget.amount:
        refusals.append(Reason.BUDGET_CAP)
    if offer.stock == "none":
        refusals.append(Reason.NO_CAPACITY)
    return refusals


def _budget_hours(
    offer: Offer, price: Money | None, spent: Mapping[str, Money], budget: Money | None, at: datetime
) -> int | None:
    """Return in how many whole hours the budget is used up with this machine and those that run in the account already."""
    if price is None or budget is None or price.currency != budget.currency:
        return None
    running = lease_rates(leases=list(Lease.objects.filter(account=offer.account, ended_at=None).only("pk")), at=at)
    beside = sum(
        (rate[budget.currency].amount for rate in running.values() if rate and budget.currency in rate), Decimal(0)
    )
    used = spent.get(budget.currency, Money(Decimal(0), budget.currency))
    hours = budget_hours(budget=budget.amount, used=used.amount, rate=price.amount + beside, at=at)
    return None if hours is None else int(hours)


def _warnings(
    offer: Offer, price: Money | None, spent: Mapping[str, Money], budget: Money | None, lasts: int | None
) -> list[str]:
    warnings = []
    if price is None:
        warnings.append(_("The provider tells no price for it. What it costs is seen on the machine."))
    used = spent.get(budget.currency) if budget is not None else None
    if budget is not None and used is not None and budget.amount * WARN_SHARE <= used.amount < budget.amount:
        share = int(used.amount * 100 / budget.amount) if budget.amount else 100
        warnings.append(_("%(share)s %% of this month's budget is used.") % {"share": share})
    if lasts:
        warnings.append(_("With it this month's budget is used up in %(hours)s h.") % {"hours": lasts})
    account = offer.account
    if price is not None and account.balance is not None and account.currency == price.currency:
        hours = int(account.balance / price.amount) if price.amount else 0
        if hours < 24:
            warnings.append(_("The account's balance lasts for %(hours)s hours of it.") % {"hours": hours})
    kind = provider_type(account.kind)
    if issubclass(kind, CanOrder) and not kind.runs_startup_script:
        warnings.append(_("The provider runs no start-up script: run the join line on the machine yourself."))
    return warnings
