"""Filters for money and reasons of what is billed. A missing price is a dash with its reason, never zero.

{{ amount|price:currency }}: a price or a dash. {{ money|money }}: of a Money. {{ rates|rates }}, {{ totals|totals }}: by
currency; None is a dash, {} too. {{ reason|why }}, {{ reason|next_step }}: the words of a typed reason.
"""

from collections.abc import Mapping
from decimal import Decimal

from django import template
from django.utils.translation import gettext as _

from fleet.reasons import REASON_WORDS, Reason
from frontend import money as words
from frontend.templatetags.fleetdeck import missing
from panel.core.money import Money

register = template.Library()


@register.filter
def price(amount: Decimal | None, currency: str) -> str:
    """Return a price in a currency; a dash when the provider told none."""
    return missing(_("not told")) if amount is None or amount == "" else words.price_text(amount, currency)


@register.filter
def money(value: Money | None) -> str:
    """Return a price; a dash when it is not known."""
    return missing(_("not told")) if not value else words.price_text(value.amount, value.currency)


@register.filter
def rates(value: Mapping[str, Money] | None) -> str:
    """Return what an hour costs; a dash when that is not known, or when it costs nothing any more."""
    if value is None:
        return missing(_("price not known"))
    return words.rates_text(value) if value else missing(_("not billed"))


@register.filter
def totals(value: Mapping[str, Money] | None) -> str:
    """Return what was spent; a dash when nothing was."""
    return words.sums_text(value) if value else missing(_("nothing billed"))


@register.filter
def why(reason: str) -> str:
    """Return the sentence of a typed reason; nothing for none."""
    return str(REASON_WORDS[Reason(reason)].sentence) if reason and reason in Reason.values else ""


@register.filter
def next_step(reason: str) -> str:
    """Return what to do about a typed reason; nothing for none."""
    return str(REASON_WORDS[Reason(reason)].next_step) if reason and reason in Reason.values else ""
