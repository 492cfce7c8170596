"""Forms about gateways, keys, secrets, and how servers serve. The services decide whether what is typed may be."""

from datetime import timedelta
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy

from endpoints.enums import RuntimeChoice
from endpoints.models import Endpoint, ServingHost
from endpoints.services.hosts import SETTABLE
from fleet.models import Server
from frontend.serving.forms import PLAIN
from panel.core.clock import now


class GatewayForm(forms.Form):
    """How a gateway listens."""

    port = forms.IntegerField(label=gettext_lazy("Port"), min_value=1, max_value=65_535, initial=8080)
    public_url = forms.CharField(
        label=gettext_lazy("Address for callers"),
        max_length=300,
        required=False,
        widget=forms.TextInput(attrs=PLAIN | {"placeholder": "https://llm.example.com"}),
        help_text=gettext_lazy("Left empty: the server's own address and the port."),
    )
    certificate_file = forms.CharField(
        label=gettext_lazy("Certificate file"),
        max_length=500,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=gettext_lazy("A path on that machine; empty: plain HTTP, for instance behind a proxy with TLS."),
    )
    key_file = forms.CharField(
        label=gettext_lazy("Key file"), max_length=500, required=False, widget=forms.TextInput(attrs=PLAIN)
    )


class NewGatewayForm(GatewayForm):
    """A new gateway."""

    server = forms.ChoiceField(label=gettext_lazy("Server"))
    field_order = ("server", "port", "public_url", "certificate_file", "key_file")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = Server.objects.filter(retired_at=None, gateway=None, agent__revoked_at=None).order_by("name")
        self.fields["server"] = forms.ChoiceField(
            label=gettext_lazy("Server"),
            choices=[(str(pk), name) for pk, name in found.values_list("pk", "name")],
            help_text=gettext_lazy("Its agent runs the data plane; callers must reach it, and it the replicas."),
        )
        self.order_fields(list(self.field_order))


LIFETIMES: Final = (
    ("", gettext_lazy("Never")),
    ("7", gettext_lazy("In 7 days")),
    ("30", gettext_lazy("In 30 days")),
    ("90", gettext_lazy("In 90 days")),
    ("365", gettext_lazy("In a year")),
)


class CallerKeyForm(forms.Form):
    """A new key for a caller."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        help_text=gettext_lazy("Who calls with it."),
        widget=forms.TextInput(attrs=PLAIN),
    )
    endpoints = forms.MultipleChoiceField(
        label=gettext_lazy("Endpoints"),
        required=False,
        widget=forms.SelectMultiple(attrs={"size": 4}),
        help_text=gettext_lazy("None chosen: all of them, also later ones."),
    )
    lifetime = forms.ChoiceField(label=gettext_lazy("Ends"), choices=LIFETIMES, required=False)
    requests_per_minute = forms.IntegerField(
        label=gettext_lazy("Requests per minute"), required=False, min_value=1, max_value=2**31 - 1,
        help_text=gettext_lazy("In each gateway; more are answered 429."),
    )  # fmt: skip
    tokens_per_minute = forms.IntegerField(
        label=gettext_lazy("Tokens per minute"), required=False, min_value=1, max_value=2**31 - 1,
        help_text=gettext_lazy("Counted from what engines report; held within a minute."),
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = Endpoint.objects.filter(deleted_at=None).order_by("name").values_list("name", flat=True)
        field = self.fields["endpoints"]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101  # declared above
        field.choices = [(name, name) for name in names]

    @property
    def values(self) -> dict[str, Any]:
        """Return it as `key_create` takes it; the form must be valid."""
        given = self.cleaned_data
        days = given["lifetime"]
        return {
            "name": given["name"],
            "endpoints": given["endpoints"],
            "expires_at": now() + timedelta(days=int(days)) if days else None,
            "requests_per_minute": given["requests_per_minute"],
            "tokens_per_minute": given["tokens_per_minute"],
        }


class SecretForm(forms.Form):
    """A value that engines get in their environment, by name."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=64, widget=forms.TextInput(attrs=PLAIN | {"placeholder": "HF_TOKEN"}),
        help_text=gettext_lazy("Letters, digits, _ and -. A name that is there gets the new value."),
    )  # fmt: skip
    value = forms.CharField(
        label=gettext_lazy("Value"),
        max_length=8_192,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy("Kept encrypted, never shown again."),
    )


class ServingForm(forms.Form):
    """How a server serves replicas."""

    address = forms.CharField(
        label=gettext_lazy("Address for gateways"),
        max_length=253,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=gettext_lazy("Where gateways reach its replicas; empty: where its agent was last heard from."),
    )
    first_port = forms.IntegerField(label=gettext_lazy("First port"), min_value=1024, max_value=65_535)
    last_port = forms.IntegerField(
        label=gettext_lazy("Last port"),
        min_value=1024,
        max_value=65_535,
        help_text=gettext_lazy("One for each replica."),
    )
    runtime = forms.ChoiceField(label=gettext_lazy("Engines run as"), choices=RuntimeChoice.choices)
    hf_endpoint = forms.CharField(
        label=gettext_lazy("Mirror of Hugging Face"),
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs=PLAIN | {"placeholder": "https://hf-mirror.example.com"}),
        help_text=gettext_lazy("Becomes HF_ENDPOINT."),
    )
    uses_modelscope = forms.BooleanField(
        label=gettext_lazy("Load models from ModelScope where the engine can"), required=False
    )
    image_prefix = forms.CharField(
        label=gettext_lazy("Mirror of images"), max_length=200, required=False, widget=forms.TextInput(attrs=PLAIN),
        help_text=gettext_lazy("Put before the names of images."),
    )  # fmt: skip
    models_dir = forms.CharField(
        label=gettext_lazy("Folder of models"), max_length=500, required=False, widget=forms.TextInput(attrs=PLAIN),
        help_text=gettext_lazy("An absolute path there: downloads are kept in it, and nothing outside it is given to engines."),
    )  # fmt: skip

    @classmethod
    def initial_of(cls, serving: ServingHost) -> dict[str, Any]:
        """Return what the fields show."""
        return {name: getattr(serving, name) for name in SETTABLE}
