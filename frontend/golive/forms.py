"""The form of a go-live test, and the few fields of a rollout's gate."""

from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from endpoints.models import Endpoint
from fleet.models import Server
from frontend.golive.words import MEASURES
from frontend.serving.forms import PLAIN
from monitoring.golive_runs.asked import Asked

_LENGTHS: Final = ("length_median", "length_long", "length_longest")


def _endpoints() -> list[tuple[str, str]]:
    found = Endpoint.objects.filter(deleted_at=None, deleting_at=None).order_by("name").values_list("pk", "name")
    return [(str(pk), name) for pk, name in found]


def _places() -> list[tuple[str, str]]:
    servers = Server.objects.filter(retired_at=None, agent__revoked_at=None).order_by("name").values_list("pk", "name")
    return [
        ("hosts", _("On its own machines, past the gateway")),
        ("panel", _("The panel, through the gateway")),
        *((f"server:{pk}", _("%(name)s, through the gateway") % {"name": name}) for pk, name in servers),
    ]


def _ms(label: Any, *, initial: float | None = None, help_text: Any = "") -> forms.FloatField:
    return forms.FloatField(
        label=label, required=False, min_value=0.1, max_value=600_000, initial=initial, help_text=help_text
    )


class GoLiveForm(forms.Form):
    """A go-live test."""

    endpoint = forms.ChoiceField(label=gettext_lazy("Endpoint"), choices=_endpoints)
    places = forms.MultipleChoiceField(
        label=gettext_lazy("Load from"), choices=_places, initial=["hosts"], widget=forms.SelectMultiple(attrs={"size": 4}),
        help_text=gettext_lazy("The peak is shared evenly between them; each is judged alone, and the worst counts."),
    )  # fmt: skip
    key = forms.CharField(
        label=gettext_lazy("Key of a caller"), required=False, max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("For places that go through the gateway. Kept encrypted with the test."),
    )  # fmt: skip
    peak_per_second = forms.FloatField(
        label=gettext_lazy("Expected peak, requests a second"), min_value=0.01, max_value=1_000,
        help_text=gettext_lazy("They arrive at random moments and wait for nobody, as callers do."),
    )  # fmt: skip
    measure = forms.ChoiceField(
        label=gettext_lazy("What counts"), choices=lambda: list(MEASURES.items()), initial="ttft"
    )
    p95_ms = _ms(gettext_lazy("P95 within (ms)"), initial=500)
    p99_ms = _ms(
        gettext_lazy("P99 within (ms)"), initial=1_000,
        help_text=gettext_lazy("Proving it takes 459 requests, none of them over; left empty, P99 is not promised."),
    )  # fmt: skip
    error_percent = forms.FloatField(
        label=gettext_lazy("Failures at most (%)"), min_value=0.01, max_value=50, initial=1,
        help_text=gettext_lazy("The upper bound of the rate has to be within it."),
    )  # fmt: skip
    seconds = forms.FloatField(
        label=gettext_lazy("Measured seconds"), min_value=1, max_value=21_600, initial=600,
        help_text=gettext_lazy("After a warm-up of 30 s; longer when the promise needs more requests."),
    )  # fmt: skip
    length_median = forms.IntegerField(
        label=gettext_lazy("Prompt tokens: usual"), min_value=1, max_value=131_072, initial=128
    )
    length_long = forms.IntegerField(
        label=gettext_lazy("long (95th percentile)"), min_value=1, max_value=131_072, initial=512
    )
    length_longest = forms.IntegerField(label=gettext_lazy("longest"), min_value=1, max_value=131_072, initial=2_048)
    max_tokens = forms.IntegerField(label=gettext_lazy("Tokens of an answer"), min_value=1, max_value=8_192, initial=64)
    has_steps = forms.BooleanField(
        label=gettext_lazy("Then step up to saturation"), required=False, initial=True,
        help_text=gettext_lazy("1, 2, 4, 8, … at once, 20 s each, until more gains nothing: it tells the knee."),
    )  # fmt: skip
    most_concurrency = forms.IntegerField(label=gettext_lazy("Most at once"), min_value=1, max_value=256, initial=64)
    ttft_ms = _ms(gettext_lazy("Good: first token within (ms)"))
    tpot_ms = _ms(gettext_lazy("Good: each further token within (ms)"))
    e2e_ms = _ms(gettext_lazy("Good: whole answer within (ms)"))
    most_seconds = forms.FloatField(
        label=gettext_lazy("At most so many seconds"), min_value=1, max_value=28_000, initial=3_600
    )
    most_requests = forms.IntegerField(
        label=gettext_lazy("At most so many requests"), min_value=1, max_value=100_000, initial=20_000
    )
    most_tokens = forms.IntegerField(
        label=gettext_lazy("At most so many tokens"), min_value=1, max_value=1_000_000_000, initial=10_000_000
    )
    most_cost = forms.DecimalField(
        label=gettext_lazy("At most so much for its cards"), required=False, min_value=0, max_digits=18, decimal_places=4,
        help_text=gettext_lazy("Left empty: no such cap."),
    )  # fmt: skip
    currency = forms.RegexField(
        "^[A-Z]{3}$", label=gettext_lazy("Currency"), required=False, widget=forms.TextInput(attrs=PLAIN), initial="CNY"
    )
    consent = forms.BooleanField(
        label=gettext_lazy("Load the endpoint like this"), required=False,
        help_text=gettext_lazy("Its callers share it meanwhile and may wait."),
    )  # fmt: skip

    @property
    def asked(self) -> dict[str, Any]:
        """Return it as `asked_read` takes it; the form must be valid."""
        given = self.cleaned_data
        plain = (
            "peak_per_second", "measure", "p95_ms", "p99_ms", "seconds", "max_tokens", "has_steps", "most_concurrency",
            "ttft_ms", "tpot_ms", "e2e_ms", "most_seconds", "most_requests", "most_tokens",
        )  # fmt: skip
        found = {name: given[name] for name in plain}
        found |= {"error_rate": given["error_percent"] / 100, "lengths": [given[name] for name in _LENGTHS]}
        if given["most_cost"] is not None:
            found |= {"most_cost": str(given["most_cost"]), "currency": given["currency"]}
        return found


class GateForm(forms.Form):
    """The gate of a rollout, beside what a deploy asks otherwise."""

    has_gate = forms.BooleanField(
        label=gettext_lazy("Only after a go-live test has passed"), required=False,
        help_text=gettext_lazy(
            "The new revision gets no request before: its replicas are loaded from their own machines first. It needs room for "
            "one more replica. A test that fails returns to the revision before."
        ),
    )  # fmt: skip
    gate_peak = forms.FloatField(
        label=gettext_lazy("Expected peak, requests a second"),
        required=False,
        min_value=0.01,
        max_value=1_000,
        initial=1,
    )
    gate_measure = forms.ChoiceField(
        label=gettext_lazy("What counts"), choices=lambda: list(MEASURES.items()), initial="ttft", required=False
    )
    gate_p95_ms = _ms(gettext_lazy("P95 within (ms)"), initial=500)
    gate_p99_ms = _ms(gettext_lazy("P99 within (ms)"), initial=1_000)
    gate_seconds = forms.FloatField(
        label=gettext_lazy("Measured seconds"), required=False, min_value=1, max_value=21_600, initial=600
    )

    @property
    def gate(self) -> dict[str, Any] | None:
        """Return the gate as a deploy takes it, None for none; the form must be valid."""
        given = self.cleaned_data
        if not given["has_gate"]:
            return None
        usual = Asked(peak_per_second=1.0)
        return {
            "peak_per_second": given["gate_peak"] or usual.peak_per_second,
            "measure": given["gate_measure"] or usual.measure,
            "p95_ms": given["gate_p95_ms"],
            "p99_ms": given["gate_p99_ms"],
            "seconds": given["gate_seconds"] or usual.seconds,
        }
