"""The form of a probe: the fields that its kind needs. The services decide whether what is typed can be probed."""

import json
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from endpoints.models import Endpoint
from fleet.agent.probes.target import STREAMS
from fleet.models import Server
from frontend.probing.words import KINDS, METRICS
from frontend.serving.forms import PLAIN, words_of
from monitoring.probing.models import Probe

_TEXT: Final = forms.TextInput(attrs=PLAIN)
_WEB: Final = frozenset({"http", "chat", "completion", "kserve_ready", "kserve_infer"})
_WITH_TLS: Final = _WEB | {"grpc_health"}
_WITH_PORT: Final = frozenset(KINDS) - {"dns", "icmp"}
# Which fields of a target belong to which kinds; the others are taken out of the form.
_ONLY: Final[Mapping[str, frozenset[str]]] = {
    "port": _WITH_PORT,
    "is_tls": _WITH_TLS,
    "path": _WEB,
    "method": frozenset({"http"}),
    "statuses": frozenset({"http"}),
    "must_contain": frozenset({"http"}),
    "must_not_contain": frozenset({"http"}),
    "follow": frozenset({"http"}),
    "body": frozenset({"http", "kserve_infer"}),
    "headers": _WEB,
    "bearer": _WEB,
    "model": frozenset(STREAMS),
    "prompt": frozenset(STREAMS),
    "max_tokens": frozenset(STREAMS),
    "query": frozenset({"dns"}),
    "server": frozenset({"dns"}),
    "expected": frozenset({"dns"}),
    "service": frozenset({"grpc_health"}),
    "server_name": _WITH_TLS | {"tls"},
    "is_verified": _WITH_TLS | {"tls"},
    "connections": _WITH_TLS,
    "family": frozenset(KINDS) - {"dns"},
}
FIRST: Final = (
    "host",
    "port",
    "is_tls",
    "path",
    "model",
    "prompt",
    "max_tokens",
    "query",
    "server",
    "expected",
    "service",
)
_NUMBERS: Final = ("port", "max_tokens", "follow", "slow_ms", "timeout_seconds")
_CONNECTIONS: Final = (
    ("cold", gettext_lazy("Cold: a new connection each time")),
    ("warm", gettext_lazy("Warm: a connection that is open")),
    ("both", gettext_lazy("Both, one after the other, kept apart")),
)
_FAMILIES: Final = (("", gettext_lazy("As the system prefers")), ("4", "IPv4"), ("6", "IPv6"))


def places() -> list[tuple[str, str]]:
    """Return from where a probe may look."""
    servers = Server.objects.filter(retired_at=None, agent__revoked_at=None).order_by("name").values_list("pk", "name")
    return [
        ("panel", _("The panel itself")),
        ("agents", _("Every agent, also later ones")),
        *((f"server:{pk}", name) for pk, name in servers),
    ]


def endpoints() -> list[tuple[str, str]]:
    """Return what a probe can be about."""
    found = Endpoint.objects.filter(deleted_at=None).order_by("name").values_list("pk", "name")
    return [("", "—"), *((str(pk), name) for pk, name in found)]


class ProbeForm(forms.Form):
    """One probe; kind: decides which fields there are."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100, widget=_TEXT)
    host = forms.CharField(
        label=gettext_lazy("Host"),
        max_length=255,
        widget=_TEXT,
        help_text=gettext_lazy("A name or an address, without https://"),
    )
    port = forms.IntegerField(
        label=gettext_lazy("Port"), required=False, min_value=1, max_value=65_535,
        help_text=gettext_lazy("Left empty: 443 with TLS, else 80."),
    )  # fmt: skip
    is_tls = forms.BooleanField(label=gettext_lazy("With TLS (https)"), required=False)
    path = forms.CharField(label=gettext_lazy("Path"), max_length=1_000, required=False, widget=_TEXT, initial="/")
    model = forms.CharField(
        label=gettext_lazy("Name of the model"), max_length=255, required=False, widget=_TEXT,
        help_text=gettext_lazy("As the engine calls it."),
    )  # fmt: skip
    prompt = forms.CharField(
        label=gettext_lazy("Prompt"), max_length=100_000, required=False, widget=forms.Textarea(attrs={"rows": 2, **PLAIN}),
        initial="Count from one to twenty.",
        help_text=gettext_lazy("A unique text is put before it, so that no cache of prefixes makes the engine look faster."),
    )  # fmt: skip
    max_tokens = forms.IntegerField(
        label=gettext_lazy("Most tokens"), required=False, min_value=1, max_value=4_096, initial=32
    )
    query = forms.ChoiceField(
        label=gettext_lazy("Kind of record"), choices=(("A", "A"), ("AAAA", "AAAA")), required=False
    )
    server = forms.CharField(
        label=gettext_lazy("Name server"), max_length=255, required=False, widget=_TEXT,
        help_text=gettext_lazy("Left empty: the system's own resolver."),
    )  # fmt: skip
    expected = forms.CharField(
        label=gettext_lazy("Expected addresses"), max_length=1_000, required=False, widget=_TEXT,
        help_text=gettext_lazy("One of them has to be in the answer; separated by commas."),
    )  # fmt: skip
    service = forms.CharField(label=gettext_lazy("Service"), max_length=255, required=False, widget=_TEXT)
    vantages = forms.MultipleChoiceField(
        label=gettext_lazy("From"), choices=places, widget=forms.SelectMultiple(attrs={"size": 5}),
        help_text=gettext_lazy("Two places or more tell the network from the model."),
    )  # fmt: skip
    interval_seconds = forms.FloatField(
        label=gettext_lazy("Every so many seconds"), min_value=1, max_value=86_400, initial=30,
        help_text=gettext_lazy("P99 needs 299 results: 2.5 hours at 30 s."),
    )  # fmt: skip
    timeout_seconds = forms.FloatField(
        label=gettext_lazy("Timeout in seconds"), min_value=0.1, max_value=600, initial=10,
        help_text=gettext_lazy("For all phases together; it is applied as it stands here."),
    )  # fmt: skip
    connections = forms.ChoiceField(label=gettext_lazy("Connection"), choices=_CONNECTIONS, initial="cold")
    metric = forms.ChoiceField(label=gettext_lazy("What counts"), choices=lambda: list(METRICS.items()), initial="e2e")
    threshold_ms = forms.FloatField(
        label=gettext_lazy("Threshold of P99 in ms"), required=False, min_value=0.001, max_value=3_600_000
    )
    subject_id = forms.ChoiceField(
        label=gettext_lazy("Is about the endpoint"), choices=endpoints, required=False,
        help_text=gettext_lazy("Its deploys and faults stand on the charts then."),
    )  # fmt: skip
    bearer = forms.CharField(
        label=gettext_lazy("Bearer token"), max_length=1_000, required=False, strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy("Kept encrypted and never shown again. Left empty: the one that is kept, if any."),
    )  # fmt: skip
    method = forms.ChoiceField(
        label=gettext_lazy("Method"),
        required=False,
        choices=[(name, name) for name in ("GET", "HEAD", "POST", "PUT", "OPTIONS")],
    )
    headers = forms.CharField(
        label=gettext_lazy("Headers"), max_length=8_000, required=False, widget=forms.Textarea(attrs={"rows": 2, **PLAIN}),
        help_text=gettext_lazy("One a line, as in: X-Team: search"),
    )  # fmt: skip
    body = forms.CharField(
        label=gettext_lazy("Body"), max_length=100_000, required=False, widget=forms.Textarea(attrs={"rows": 3, **PLAIN}),
        help_text=gettext_lazy("JSON or text; {nonce} in it becomes a unique text."),
    )  # fmt: skip
    statuses = forms.CharField(
        label=gettext_lazy("Good statuses"), max_length=100, required=False, widget=_TEXT,
        help_text=gettext_lazy("Left empty: every 2xx. As in: 200, 401"),
    )  # fmt: skip
    must_contain = forms.CharField(label=gettext_lazy("Must contain"), max_length=1_000, required=False, widget=_TEXT)
    must_not_contain = forms.CharField(
        label=gettext_lazy("Must not contain"), max_length=1_000, required=False, widget=_TEXT
    )
    follow = forms.IntegerField(
        label=gettext_lazy("Redirects to follow"), required=False, min_value=0, max_value=5, initial=0,
        help_text=gettext_lazy("0: a redirect is an error, and where it leads is told."),
    )  # fmt: skip
    server_name = forms.CharField(
        label=gettext_lazy("Name for TLS and the Host header"), max_length=255, required=False, widget=_TEXT,
        help_text=gettext_lazy("Where it is not the host above."),
    )  # fmt: skip
    is_verified = forms.BooleanField(label=gettext_lazy("Check the certificate"), required=False, initial=True)
    family = forms.ChoiceField(label=gettext_lazy("Address family"), choices=_FAMILIES, required=False)
    is_control = forms.BooleanField(
        label=gettext_lazy("Control target"), required=False,
        help_text=gettext_lazy("It tells how the place itself is: when all of them fail, other results say so and alert nobody."),
    )  # fmt: skip
    slow_ms = forms.FloatField(
        label=gettext_lazy("As a control it is slow over, in ms"), required=False, min_value=1, max_value=600_000
    )

    def __init__(self, *args: Any, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        for name, kinds in _ONLY.items():
            if kind not in kinds:
                del self.fields[name]
        if kind not in _WITH_TLS | {"icmp"}:
            self.fields["metric"] = forms.ChoiceField(
                label=gettext_lazy("What counts"), choices=[("e2e", METRICS["e2e"])], initial="e2e"
            )

    def clean_headers(self) -> dict[str, str]:
        """Return what is sent beside the usual headers."""
        found: dict[str, str] = {}
        for line in self.cleaned_data["headers"].splitlines():
            name, colon, value = line.partition(":")
            if line.strip() and not colon:
                raise ValidationError(_("Write each as Name: value."))
            if line.strip():
                found[name.strip()] = value.strip()
        return found

    def clean_statuses(self) -> list[int]:
        """Return the statuses that count as good."""
        given = words_of(self.cleaned_data["statuses"])
        if any(not (word.isascii() and word.isdecimal() and 100 <= int(word) < 600) for word in given):
            raise ValidationError(_("A status is a number from 100 to 599."))
        return [int(word) for word in given]

    @property
    def target(self) -> dict[str, Any]:
        """Return the target as it is stored; the form must be valid."""
        given = self.cleaned_data
        found: dict[str, Any] = {"kind": self.kind, "host": given["host"].strip()}
        for name in ("path", "model", "prompt", "query", "server", "service", "method", "must_contain", "must_not_contain",
                     "server_name"):  # fmt: skip
            if given.get(name):
                found[name] = given[name]
        for name in _NUMBERS:
            if given.get(name) is not None:
                found[name] = given[name]
        for name in ("is_tls", "is_control"):
            if given.get(name):
                found[name] = True
        if "is_verified" in given and not given["is_verified"]:
            found["is_verified"] = False
        found |= {name: given[name] for name in ("headers", "statuses") if given.get(name)}
        if given.get("expected"):
            found["expected"] = words_of(given["expected"])
        if given.get("family"):
            found["family"] = int(given["family"])
        if given.get("body"):
            found["body"] = _json_or_text(given["body"])
        if given.get("connections"):
            both = given["connections"] == "both"
            found["connections"] = ["cold", "warm"] if both else [given["connections"]]
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """Return everything as the service takes it; the form must be valid."""
        given = self.cleaned_data
        about = given["subject_id"]
        found = {name: given[name] for name in ("name", "interval_seconds", "vantages", "metric", "threshold_ms")}
        found |= {"subject_kind": "endpoint" if about else "", "subject_id": int(about) if about else None}
        found["target"] = self.target
        return found | ({"bearer": given["bearer"]} if given.get("bearer") else {})

    @classmethod
    def initial_of(cls, probe: Probe) -> dict[str, Any]:
        """Return what the fields show of a probe; its bearer is never shown."""
        target = probe.target
        found = {name: value for name, value in target.items() if name in cls.base_fields}
        found |= {
            name: getattr(probe, name) for name in ("name", "interval_seconds", "vantages", "metric", "threshold_ms")
        }
        connections = target.get("connections", ["cold"])
        found["connections"] = "both" if len(connections) > 1 else connections[0]
        found["headers"] = "\n".join(f"{name}: {value}" for name, value in target.get("headers", {}).items())
        found["statuses"] = ", ".join(str(status) for status in target.get("statuses", []))
        found["expected"] = ", ".join(target.get("expected", []))
        body = target.get("body")
        found["body"] = (
            body if isinstance(body, str) else "" if body is None else json.dumps(body, ensure_ascii=False, indent=1)
        )
        found["is_verified"] = target.get("is_verified", True)
        found["subject_id"] = str(probe.subject_id or "")
        return found


def _json_or_text(text: str) -> Any:
    """Return what a body means: an object or list of JSON, else the text itself."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict | list) else text
