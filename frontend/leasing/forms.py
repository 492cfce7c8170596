"""Forms about what is rented: made from what a provider asks for, and what people type in about a contract."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.enums import PriceComponent, PriceUnit, TimeStep
from fleet.models import ProviderAccount, Server
from fleet.providers.base import Billing, Field
from fleet.services.contracts import PricePart
from panel.core.money import Money

CREDENTIAL: Final = "credential_"
OPTION: Final = "option_"
_PLAIN: Final = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}


def provider_field(field: Field, choices: Mapping[str, Any] | None = None) -> forms.Field:
    """Return the form's field for one thing that a provider asks for. choices: what the account has for it."""
    offered = choices or field.choices
    shared: dict[str, Any] = {
        "label": field.label,
        "required": field.is_required and not field.default,
        "initial": field.default,
        "help_text": field.help,
    }
    if offered:
        found = [*([] if field.is_required and field.default in offered else [("", "—")]), *offered.items()]
        return forms.ChoiceField(choices=found, **shared)
    widget = forms.PasswordInput(attrs={**_PLAIN, "autocomplete": "new-password"}) if field.is_secret else None
    return forms.CharField(
        max_length=field.max_length, widget=widget or forms.TextInput(attrs=_PLAIN), strip=True, **shared
    )


def _amount(label: Any, help_text: Any = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label, help_text=help_text, required=False, min_value=0, max_digits=18, decimal_places=6
    )


class _ProviderForm(forms.Form):
    """A form with fields of a provider; each group is read back by its prefix."""

    def add(self, prefix: str, fields: Sequence[Field], values: Mapping[str, Any] | None = None) -> None:
        """Add a group of fields, filled with values that may be shown."""
        for field in fields:
            made = provider_field(field)
            if values and values.get(field.name) and not field.is_secret:
                made.initial = values[field.name]
            self.fields[prefix + field.name] = made

    def group(self, prefix: str) -> dict[str, str]:
        """Return what was typed into a group, by the provider's names; the form must be valid."""
        found = self.cleaned_data.items()
        return {name.removeprefix(prefix): str(value) for name, value in found if name.startswith(prefix)}

    def bound(self, prefix: str) -> list[forms.BoundField]:
        """Return the bound fields of a group, for the template."""
        return [self[name] for name in self.fields if name.startswith(prefix)]

    @property
    def credential_fields(self) -> list[forms.BoundField]:
        """Return the fields of the key."""
        return self.bound(CREDENTIAL)

    @property
    def option_fields(self) -> list[forms.BoundField]:
        """Return the options."""
        return self.bound(OPTION)


class AccountForm(_ProviderForm):
    """A new account at a provider."""

    name = forms.CharField(
        label=_("Name"), max_length=100, help_text=_("As your team calls it."), widget=forms.TextInput(attrs=_PLAIN)
    )
    is_adopting = forms.BooleanField(
        label=_("Adopt machines that are found in the account"),
        required=False,
        help_text=_("Otherwise they stand under Differences until somebody decides."),
    )
    monthly_budget = _amount(_("Budget for a month"), _("Orders are refused once it is used up."))
    max_price_per_hour = _amount(_("Highest price per hour"), _("Dearer orders are refused."))

    def __init__(self, *args: Any, kind: Any, account: ProviderAccount | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if account is None:
            self.add(CREDENTIAL, tuple(kind.credential_fields))
        self.add(OPTION, tuple(kind.option_fields), account.options if account else None)
        if account is not None:
            for name in ("name", "is_adopting", "monthly_budget", "max_price_per_hour"):
                self.fields[name].initial = getattr(account, name)

    @property
    def guards(self) -> dict[str, Any]:
        """Return what is not of the provider; the form must be valid."""
        return {
            name: self.cleaned_data[name] for name in ("name", "is_adopting", "monthly_budget", "max_price_per_hour")
        }


class KeyForm(_ProviderForm):
    """A new key of an account: the present one is never shown."""

    is_same_login = forms.BooleanField(
        label=_("It is a key of the same login"),
        required=False,
        help_text=_(
            "Needed only when the panel cannot tell while machines run: with another login's key it would lose them."
        ),
    )

    def __init__(self, *args: Any, kind: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add(CREDENTIAL, tuple(kind.credential_fields))


class OrderForm(_ProviderForm):
    """What an order needs beside its offer. choices: field → what the account has for it."""

    name = forms.CharField(
        label=_("Name of the server"), max_length=100, required=False, widget=forms.TextInput(attrs=_PLAIN)
    )
    max_price_per_hour = _amount(_("At most per hour"), _("The order is refused when the price is above it."))
    override_reason = forms.CharField(
        label=_("Why the budget may be passed"), max_length=500, required=False, widget=forms.TextInput(attrs=_PLAIN)
    )

    def __init__(
        self,
        *args: Any,
        order_fields: Sequence[Field],
        choices: Mapping[str, Mapping[str, str]],
        has_budget_refusal: bool,
        server: Server | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        for field in order_fields:
            self.fields[OPTION + field.name] = provider_field(field, choices.get(field.name))
        if not has_budget_refusal:
            del self.fields["override_reason"]
        if server is not None:
            del self.fields["name"]
        else:
            self.fields["name"].required = True


class PricePartForm(forms.Form):
    """One part of a price."""

    component = forms.ChoiceField(label=_("For"), choices=PriceComponent.choices)
    amount = _amount(_("Amount"))
    currency = forms.RegexField(
        r"^[A-Za-z]{3}$",
        label=_("Currency"),
        initial="CNY",
        required=False,
        widget=forms.TextInput(attrs={**_PLAIN, "maxlength": 3, "list": "currencies"}),
        error_messages={"invalid": _("Three letters, as in CNY or USD.")},
    )
    unit = forms.ChoiceField(label=_("Unit"), choices=PriceUnit.choices, initial=PriceUnit.MONTH)
    runs_while_stopped = forms.BooleanField(label=_("Also while stopped"), required=False, initial=True)

    def clean(self) -> dict[str, Any]:
        """Refuse an amount without a currency."""
        found = super().clean() or {}
        if found.get("amount") is not None and not found.get("currency") and "currency" not in self.errors:
            self.add_error("currency", _("An amount has a currency."))
        return found

    @property
    def part(self) -> PricePart | None:
        """Return the part, None when no amount was typed."""
        amount = self.cleaned_data.get("amount")
        if amount is None:
            return None
        return PricePart(
            component=PriceComponent(self.cleaned_data["component"]),
            price=Money(amount, self.cleaned_data["currency"].upper()),
            unit=PriceUnit(self.cleaned_data["unit"]),
            runs_while_stopped=self.cleaned_data["runs_while_stopped"],
        )


PriceFormSet = forms.formset_factory(PricePartForm, extra=0, max_num=12, validate_max=True)
PART_INITIAL: Final = [
    {"component": component, "unit": unit}
    for component, unit in (
        (PriceComponent.COMPUTE, PriceUnit.MONTH),
        (PriceComponent.ADDRESS, PriceUnit.MONTH),
        (PriceComponent.DISK, PriceUnit.MONTH),
        (PriceComponent.SETUP, PriceUnit.ONCE),
    )
]


def price_formset(data: Any = None) -> "forms.BaseFormSet[PricePartForm]":
    """Return the rows for parts of a price, four empty ones to begin with."""
    return PriceFormSet(data, prefix="price", initial=None if data is not None else PART_INITIAL)


def parts_of(rows: "forms.BaseFormSet[PricePartForm]") -> list[PricePart]:
    """Return the parts that were typed in; the rows must be valid."""
    return [part for form in rows.forms if (part := form.part) is not None]


def _moment(label: Any, **extra: Any) -> forms.DateTimeField:
    return forms.DateTimeField(
        label=label,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
        **extra,
    )


class TermsForm(forms.Form):
    """Terms of a contract."""

    landlord = forms.CharField(label=_("Paid to"), max_length=100, required=False)
    region = forms.CharField(label=_("Region"), max_length=64, required=False)
    billing = forms.ChoiceField(label=_("Billing"), choices=Billing.choices, initial=Billing.MONTHLY)
    renews_at = _moment(_("Paid until"), required=False)
    is_renewing = forms.BooleanField(label=_("Renews by itself"), required=False)
    reminder_days = forms.IntegerField(label=_("Remind so many days before"), min_value=0, max_value=365, initial=7)
    step_seconds = forms.TypedChoiceField(
        label=_("Time is billed in"), choices=TimeStep.choices, initial=TimeStep.SECOND, coerce=int, required=False
    )
    least_seconds = forms.IntegerField(
        label=_("At least, in seconds"), min_value=0, max_value=86_400, initial=0, required=False
    )
    free_seconds = forms.IntegerField(
        label=_("Free at the start of a run, in seconds"), min_value=0, max_value=86_400, initial=0, required=False
    )
    notes = forms.CharField(label=_("Notes"), max_length=4000, required=False, widget=forms.Textarea(attrs={"rows": 3}))

    def clean_step_seconds(self) -> int:
        """Return the step: each second where nothing else was said."""
        return int(self.cleaned_data["step_seconds"] or TimeStep.SECOND)

    def clean_least_seconds(self) -> int:
        """Return the least that counts, none where nothing was said."""
        return self.cleaned_data["least_seconds"] or 0

    def clean_free_seconds(self) -> int:
        """Return what is free, nothing where nothing was said."""
        return self.cleaned_data["free_seconds"] or 0


class TermsChangeForm(TermsForm):
    """Changed terms; a new price counts from its day on."""

    effective_from = _moment(_("New prices count from"), required=False, help_text=_("Now when left empty."))


class ContractForm(TermsForm):
    """A contract that is written down."""

    name = forms.CharField(label=_("Name"), max_length=200, help_text=_("As in “rack 7, Shanghai”."))
    started_at = _moment(_("Paid since"))
    gpu_model = forms.CharField(label=_("GPU model"), max_length=64, required=False)
    gpu_count = forms.IntegerField(label=_("Number of GPUs"), min_value=1, max_value=64, required=False)
    server = forms.ModelChoiceField(label=_("Server"), queryset=Server.objects.none(), required=False, empty_label="—")
    account = forms.ModelChoiceField(
        label=_("Account"), queryset=ProviderAccount.objects.none(), required=False, empty_label="—"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        server, account = self.fields["server"], self.fields["account"]
        assert isinstance(server, forms.ModelChoiceField)  # noqa: S101 (tells the type checker what the class says above)
        assert isinstance(account, forms.ModelChoiceField)  # noqa: S101 (the same)
        server.queryset = servers_without_lease()
        account.queryset = ProviderAccount.objects.filter(removed_at=None, kind="static").order_by("name")


def servers_without_lease() -> Any:
    """Return the servers whose bill nobody has told the panel about."""
    paid = Server.objects.filter(leases__ended_at=None, leases__isnull=False).values("pk")
    return Server.objects.filter(retired_at=None).exclude(pk__in=paid).order_by("name")


class CloseForm(forms.Form):
    """When a contract ended."""

    ended_at = _moment(_("Ended"))
    reason = forms.CharField(label=_("Reason"), max_length=500, required=False)
