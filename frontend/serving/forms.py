"""Forms about endpoints: placement and settings. The services decide whether what is typed may be."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from endpoints.models import Endpoint
from endpoints.services.endpoints import BOUNDS, OPEN
from fleet.models import Server
from frontend.formatting import GIB

PLAIN: Final = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}
YES_NO: Final = (("yes", gettext_lazy("Yes")), ("no", gettext_lazy("No")))


def yes_no(label: Any, help_text: Any = "", *, initial: str = "yes") -> forms.ChoiceField:
    """Return a question; no checkbox, because an address cannot say that one is empty."""
    return forms.ChoiceField(label=label, help_text=help_text, choices=YES_NO, initial=initial)


def words_of(text: str) -> list[str]:
    """Return what stands between commas and line ends."""
    return [word.strip() for line in text.splitlines() for word in line.split(",") if word.strip()]


def servers() -> list[tuple[str, str]]:
    """Return the servers that replicas could go to."""
    found = Server.objects.filter(retired_at=None).order_by("name").values_list("pk", "name")
    return [(str(pk), name) for pk, name in found]


class PlacementForm(forms.Form):
    """Where replicas may go; what is empty asks for nothing."""

    servers = forms.MultipleChoiceField(
        label=gettext_lazy("Only these servers"),
        required=False,
        choices=servers,
        widget=forms.SelectMultiple(attrs={"size": 4}),
        help_text=gettext_lazy("None chosen: any server that may take it."),
    )
    labels = forms.CharField(
        label=gettext_lazy("Labels of the server"),
        max_length=500,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=gettext_lazy("All of them, as in: pool=prod, zone=a"),
    )
    gpu_models = forms.CharField(
        label=gettext_lazy("GPU models"),
        max_length=500,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=gettext_lazy("Parts of the name, one of them, as in: H100, A100"),
    )
    min_memory_gib = forms.DecimalField(
        label=gettext_lazy("At least so much VRAM (GiB)"), required=False, min_value=0, max_value=4096
    )
    max_price = forms.DecimalField(
        label=gettext_lazy("Highest price of a GPU and hour"),
        required=False,
        min_value=0,
        max_digits=18,
        decimal_places=6,
        help_text=gettext_lazy("Servers whose price is not known are left out then."),
    )
    max_price_currency = forms.RegexField(
        "^[A-Z]{3}$", label=gettext_lazy("Currency"), required=False, widget=forms.TextInput(attrs=PLAIN), initial="CNY"
    )
    is_spread = yes_no(
        gettext_lazy("Spread over servers"), gettext_lazy("No: fill one server before the next, to keep others whole.")
    )

    def clean_labels(self) -> dict[str, str]:
        """Return the labels by name. Raises ValidationError."""
        found = {}
        for word in words_of(self.cleaned_data["labels"]):
            name, equals, value = word.partition("=")
            if not equals or not name.strip():
                raise ValidationError(_("Write each label as name=value, as in: pool=prod."))
            found[name.strip()] = value.strip()
        return found

    def clean(self) -> dict[str, Any]:
        """Want a currency with a price."""
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("max_price") is not None and not cleaned.get("max_price_currency"):
            self.add_error("max_price_currency", _("Which currency is the price in? Write its three letters, as CNY."))
        return cleaned

    @property
    def placement(self) -> dict[str, Any]:
        """Return it as an endpoint keeps it; the form must be valid."""
        given = self.cleaned_data
        price, memory = given.get("max_price"), given.get("min_memory_gib")
        found = {
            "servers": [int(each) for each in given["servers"]],
            "labels": given["labels"],
            "gpu_models": words_of(given["gpu_models"]),
            "min_memory_bytes": int(memory * GIB) if memory else None,
            "max_price": {"amount": str(price), "currency": given["max_price_currency"]} if price is not None else None,
        }
        kept: dict[str, Any] = {key: value for key, value in found.items() if value}
        return kept | {"is_spread": given["is_spread"] == "yes"}

    @staticmethod
    def placement_initial(stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the fields show of a stored placement."""
        price, memory = stored.get("max_price") or {}, stored.get("min_memory_bytes")
        return {
            "servers": [str(each) for each in stored.get("servers", ())],
            "labels": ", ".join(f"{key}={value}" for key, value in stored.get("labels", {}).items()),
            "gpu_models": ", ".join(stored.get("gpu_models", ())),
            "min_memory_gib": (Decimal(memory) / GIB).quantize(Decimal("0.1")) if memory else None,
            "max_price": Decimal(price["amount"]) if price else None,
            "max_price_currency": price.get("currency", "CNY"),
            "is_spread": "yes" if stored.get("is_spread", True) else "no",
        }


def _bounded(name: str, label: Any, help_text: Any) -> forms.IntegerField:
    low, high = BOUNDS[name]
    if name in {"first_byte_seconds", "idle_seconds"}:
        return forms.FloatField(label=label, help_text=help_text, min_value=low, max_value=high)
    return forms.IntegerField(
        label=label, help_text=help_text, min_value=int(low), max_value=int(high), required=name not in OPEN
    )


class SettingsForm(PlacementForm):
    """What may change of an endpoint without a new revision."""

    description = forms.CharField(label=gettext_lazy("Description"), max_length=500, required=False)
    project = forms.CharField(label=gettext_lazy("Project"), max_length=64, required=False)
    hosts = forms.CharField(
        label=gettext_lazy("Host names"),
        max_length=2_200,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, **PLAIN}),
        help_text=gettext_lazy("It answers under these at the root, beside its path; point them at a gateway."),
    )
    requires_key = yes_no(
        gettext_lazy("Callers need a key"), gettext_lazy("No: everybody who reaches a gateway may call it.")
    )
    in_flight_limit = _bounded(
        "in_flight_limit",
        gettext_lazy("Requests at once"),
        gettext_lazy("In each gateway; more are answered 429 with Retry-After."),
    )
    in_flight_per_replica = _bounded(
        "in_flight_per_replica",
        gettext_lazy("Requests at once for each replica"),
        gettext_lazy(
            "Empty: engines queue by themselves. For those that take one to four, the others wait in the gateway."
        ),
    )
    first_byte_seconds = _bounded(
        "first_byte_seconds",
        gettext_lazy("Seconds to the first byte"),
        gettext_lazy("Longer than the longest prefill."),
    )
    idle_seconds = _bounded(
        "idle_seconds",
        gettext_lazy("Seconds between two pieces"),
        gettext_lazy("A stream that is silent longer is cut."),
    )
    lost_after_seconds = _bounded(
        "lost_after_seconds",
        gettext_lazy("Seconds until a silent server counts as lost"),
        gettext_lazy("Its replicas are placed elsewhere then."),
    )
    rollout_deadline_seconds = _bounded(
        "rollout_deadline_seconds",
        gettext_lazy("Seconds that a new replica may take"),
        gettext_lazy("After them a rollout returns to the last good revision."),
    )

    @classmethod
    def initial_of(cls, endpoint: Endpoint) -> dict[str, Any]:
        """Return what the fields show of an endpoint."""
        names = ("description", "project", *BOUNDS)
        return {
            **{name: getattr(endpoint, name) for name in names},
            **cls.placement_initial(endpoint.placement),
            "hosts": "\n".join(endpoint.hosts),
            "requires_key": "yes" if endpoint.requires_key else "no",
        }

    @property
    def settings(self) -> dict[str, Any]:
        """Return it as `endpoint_update` takes it; the form must be valid."""
        given = self.cleaned_data
        return {
            **{name: given[name] for name in ("description", "project", *BOUNDS)},
            "placement": self.placement,
            "hosts": words_of(given["hosts"]),
            "requires_key": given["requires_key"] == "yes",
        }
