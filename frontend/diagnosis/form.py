"""The form that begins a diagnosis: of what, where its engine runs, and whether it may be loaded."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.models import Server
from monitoring.diagnosing.asked import Host
from monitoring.probing.models import Probe


def probes(endpoint_id: int | None) -> list[tuple[str, str]]:
    """Return the probes that can be looked into: those of one endpoint, else all."""
    found = Probe.objects.order_by("name")
    if endpoint_id is not None:
        found = found.filter(subject_kind="endpoint", subject_id=endpoint_id)
    return [(str(pk), name) for pk, name in found.values_list("pk", "name")]


def servers() -> list[tuple[str, str]]:
    """Return the machines on which an engine can be measured."""
    found = Server.objects.filter(retired_at=None, agent__revoked_at=None).order_by("name").values_list("pk", "name")
    return [("", "—"), *((str(pk), name) for pk, name in found)]


class DiagnosisForm(forms.Form):
    """endpoint_id: only its probes, whose machines are known."""

    probe = forms.ChoiceField(
        label=_("What is measured"), help_text=_("A probe says what is asked, from where, and what it shall keep.")
    )
    threshold_ms = forms.FloatField(
        label=_("Objective in ms"), required=False, min_value=0.001, max_value=3_600_000,
        help_text=_("Left empty: the probe’s own threshold, else 1,000 ms."),
    )  # fmt: skip
    server = forms.ChoiceField(
        label=_("The engine runs on"), choices=servers, required=False,
        help_text=_("Only for probes that belong to no endpoint: endpoints know their machines."),
    )  # fmt: skip
    port = forms.IntegerField(label=_("Its port there"), required=False, min_value=1, max_value=65_535)
    has_sweeps = forms.BooleanField(
        label=_("Load the engine for a while, to see what it is that takes the time"), required=False,
        help_text=_(
            "Prompts of 128 to 8,192 tokens one at a time, then 1 to 16 requests at once: at most 400 requests, 250,000 tokens"
            " and 5 minutes. Callers may wait longer meanwhile. Without it, a slow network is explained all the same, and a slow"
            " engine only as far as its own metrics and cards tell."
        ),
    )  # fmt: skip

    def __init__(self, *args: Any, endpoint_id: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["probe"] = forms.ChoiceField(
            label=self.base_fields["probe"].label,
            help_text=self.base_fields["probe"].help_text,
            choices=probes(endpoint_id),
        )
        if endpoint_id is not None:
            del self.fields["server"], self.fields["port"]

    @property
    def hosts(self) -> list[Host]:
        """Return the machine that was named; the form must be valid."""
        server, port = self.cleaned_data.get("server"), self.cleaned_data.get("port")
        return [Host(server_id=int(server), port=port)] if server and port else []
