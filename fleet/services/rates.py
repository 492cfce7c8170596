"""Dated exchange rates: entered by people, used only where they are there."""

from datetime import date
from decimal import Decimal

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.models import ExchangeRate
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound


def rate_enter(*, base: str, quote: str, rate: Decimal, effective_on: date, actor: Actor) -> ExchangeRate:
    """Enter what one `base` is in `quote` from a day on; one for the same day is replaced. Raises InvalidInput."""
    if base == quote:
        raise InvalidInput(_("A rate is between two currencies."), field="quote")
    if rate <= 0:
        raise InvalidInput(_("A rate is above zero."), field="rate")
    with transaction.atomic():
        row, _is_new = ExchangeRate.objects.update_or_create(
            base=base,
            quote=quote,
            effective_on=effective_on,
            defaults={"rate": rate, "entered_at": now(), "entered_by_name": actor.name[:200]},
        )
        after = {"base": base, "quote": quote, "rate": str(rate), "effective_on": effective_on.isoformat()}
        audit(actor=actor, action="rate.enter", target=row, after=after)
    return row


def rate_remove(*, rate_id: int, actor: Actor) -> None:
    """Take a rate away. Raises NotFound."""
    with transaction.atomic():
        row = ExchangeRate.objects.select_for_update().filter(pk=rate_id).first()
        if row is None:
            raise NotFound(_("There is no such rate."))
        audit(actor=actor, action="rate.remove", target=row)
        row.delete()
