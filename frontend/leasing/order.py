"""An order before it is confirmed: its plan in sentences, and what an account has for the fields of an order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
from django.core.cache import cache
from django.utils.translation import gettext as _

from fleet.enums import OperationKind
from fleet.models import Offer, ProviderAccount
from fleet.providers.base import ABILITIES, CanOrder, StopEffect
from fleet.providers.errors import ProviderError
from fleet.providers.registry import PROVIDERS, provider_type
from fleet.reasons import REASON_WORDS, Reason
from fleet.selectors.leasing import offer_list, usual_seconds
from fleet.services.accounts import account_provider
from fleet.services.planning import Plan
from frontend.formatting import listed
from frontend.leasing.accounts import ABILITY_WORDS
from frontend.money import price_text
from panel.core.errors import NotFound

CHOICES_SECONDS: Final = 120
NEEDED: Final = ("stop", "reboot", "snapshots", "billing")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that stands against an order. is_overridable: a reason may be given instead."""

    sentence: str
    next_step: str
    is_overridable: bool


def offer_found(offer_id: int) -> Offer:
    """Return one offer with its account and its price per GPU. Raises NotFound."""
    offer = offer_list().filter(pk=offer_id).first()
    if offer is None:
        raise NotFound(str(REASON_WORDS[Reason.NO_OFFER].sentence) + " " + _("Offers are replaced by each fetch."))
    return offer


def refusals_of(plan: Plan) -> list[Refusal]:
    """Return what stands against an order, in words."""
    return [
        Refusal(str(REASON_WORDS[each].sentence), str(REASON_WORDS[each].next_step), each == Reason.BUDGET_CAP)
        for each in plan.refusals
    ]


def stop_sentence(effect: StopEffect) -> str:
    """Return what stopping saves, as one sentence beside the provider's note."""
    if effect.saves_compute is None:
        return _("Whether stopping saves money is not known.")
    if not effect.saves_compute or "everything" in effect.keeps_billing:
        return _("Stopping saves nothing: the whole price goes on.")
    kept = {"disk": _("its disk"), "address": _("its address")}
    names = [kept[each] for each in effect.keeps_billing if each in kept]
    if not names:
        return _("Stopped, it costs nothing.")
    return _("Stopped, only %(kept)s goes on costing.") % {"kept": listed(names)}


def lacks(kind: str) -> list[str]:
    """Return what the provider's API cannot do, so that nobody misses it after the order."""
    provider = provider_type(kind)
    return [str(ABILITY_WORDS[name]) for name in NEEDED if not issubclass(provider, ABILITIES[name])]


def usual_time(account: ProviderAccount) -> float:
    """Return how long an order usually takes there, in seconds: measured, else as the vendor is known for."""
    measured = usual_seconds(kind=OperationKind.ORDER, account_kind=account.kind)
    return measured if measured is not None else PROVIDERS[account.kind].usual_boot.total_seconds()


def order_choices(account: ProviderAccount) -> dict[str, Mapping[str, str]]:
    """Return what the account has for each field without fixed choices; {} where it cannot be asked. Kept for two minutes."""
    kind = provider_type(account.kind)
    if not issubclass(kind, CanOrder) or kind.order_choices is CanOrder.order_choices:
        return {}
    key = f"order-choices:{account.pk}"
    known: dict[str, Mapping[str, str]] | None = cache.get(key)
    if known is None:
        known = _ask(account)
        cache.set(key, known, CHOICES_SECONDS)
    return known


def _ask(account: ProviderAccount) -> dict[str, Mapping[str, str]]:
    provider: Any = account_provider(account)
    found: dict[str, Mapping[str, str]] = {}
    for field in provider.order_fields:
        if field.choices:
            continue
        try:
            found[field.name] = dict(provider.order_choices(field.name))
        except ProviderError as error:  # it is typed in then
            log.info("order.choices_not_told", account_id=account.pk, field=field.name, reason=str(error.reason))
    return found


def cost_sentence(plan: Plan) -> str:
    """Return what the order costs, for the button's dialog."""
    if plan.price_per_hour is None or plan.price_per_month is None:
        return _("The provider tells no price for it.")
    hour, month = plan.price_per_hour, plan.price_per_month
    return _("%(hour)s per hour, %(month)s for a month of 730 hours.") % {
        "hour": price_text(hour.amount, hour.currency),
        "month": price_text(month.amount, month.currency),
    }
