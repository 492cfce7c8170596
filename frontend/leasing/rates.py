"""Exchange rates: the form, and each rate with whether sums use it now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.leasing.exchange import Rate, rate_for
from fleet.models import ExchangeRate

LISTED: Final = 500


def _currency(label: Any) -> forms.RegexField:
    return forms.RegexField(
        r"^[A-Za-z]{3}$",
        label=label,
        error_messages={"invalid": _("Three letters, as in CNY or USD.")},
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "maxlength": 3, "list": "currencies"}
        ),
    )


class RateForm(forms.Form):
    """One `base` is `rate` `quote` from a day on."""

    base = _currency(_("Currency"))
    rate = forms.DecimalField(label=_("Rate"), max_digits=18, decimal_places=8)
    quote = _currency(_("In currency"))
    effective_on = forms.DateField(
        label=_("From the day on"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        input_formats=["%Y-%m-%d"],
        help_text=_("Days are those of UTC."),
    )

    def clean_base(self) -> str:
        """Return the code in capitals."""
        return str(self.cleaned_data["base"]).upper()

    def clean_quote(self) -> str:
        """Return the code in capitals."""
        return str(self.cleaned_data["quote"]).upper()


@dataclass(frozen=True, slots=True)
class RateRow:
    """A rate of the list. state: "holds", "to_come", or "followed" by a later one of the same two currencies."""

    row: ExchangeRate
    rate: Rate
    state: str

    @property
    def dialog_id(self) -> str:
        """Return the id of the dialog that removes it."""
        return f"remove-{self.row.pk}"

    @property
    def sentence(self) -> str:
        """Return what it says, without its day."""
        return f"1 {self.rate.base} = {self.rate.rate.normalize():f} {self.rate.quote}"


def rate_rows(found: Sequence[ExchangeRate], at: datetime) -> list[RateRow]:
    """Return rates with what each is good for now. found: all of them, the newest first."""
    rates = [Rate(row.base, row.quote, row.rate, row.effective_on) for row in found]
    return [RateRow(row, rate, _state(rate, rates, at)) for row, rate in zip(found, rates, strict=True)]


def _state(rate: Rate, rates: Sequence[Rate], at: datetime) -> str:
    today = at.astimezone(UTC).date()
    if rate.effective_on > today:
        return "to_come"
    return "holds" if rate_for(rates, rate.base, rate.quote, on=today) == rate else "followed"
