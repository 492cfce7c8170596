"""Words of probes: kinds, outcomes with their sentences and marks, phases, places."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from fleet.models import Server
from monitoring.probing.tables import PANEL

KINDS: Final[Mapping[str, tuple[str | Promise, str | Promise]]] = {
    "http": ("HTTP", gettext_lazy("One request; good by its status and by text in the body.")),
    "chat": (
        gettext_lazy("Chat stream"),
        gettext_lazy("One stream of an OpenAI-compatible engine: first token, time per token, the end."),
    ),
    "completion": (gettext_lazy("Completion stream"), gettext_lazy("The same of the older completions address.")),
    "tcp": ("TCP", gettext_lazy("Whether a connection comes about, and how long it takes.")),
    "tls": ("TLS", gettext_lazy("A connection with its handshake, and for how long the certificate is good.")),
    "dns": ("DNS", gettext_lazy("Whether a name has an address, asked of a server that you choose.")),
    "kserve_ready": (gettext_lazy("KServe: ready"), gettext_lazy("Triton and others: whether the model is ready.")),
    "kserve_infer": (gettext_lazy("KServe: inference"), gettext_lazy("Triton and others: one inference.")),
    "grpc_health": (gettext_lazy("gRPC health"), gettext_lazy("The standard health check of a gRPC server.")),
    "icmp": ("ICMP", gettext_lazy("One echo, where the system permits it.")),
}

OUTCOMES: Final[Mapping[str, str | Promise]] = {
    "ok": pgettext_lazy("of a probe", "OK"),
    "timeout": gettext_lazy("No end in time"),
    "dns": gettext_lazy("Name not resolved"),
    "connect": gettext_lazy("No connection"),
    "tls": gettext_lazy("Handshake failed"),
    "http": gettext_lazy("Wrong answer"),
    "body": gettext_lazy("Wrong content"),
    "stream_error": gettext_lazy("Error within the stream"),
    "empty": gettext_lazy("Stream without text"),
    "aborted": gettext_lazy("Broken off"),
    "vantage_down": gettext_lazy("This place has no network"),
    "skipped": gettext_lazy("Not done"),
}
# What says nothing of the target.
SILENT: Final = frozenset({"vantage_down", "skipped"})

METRICS: Final[Mapping[str, Promise]] = {
    "e2e": gettext_lazy("Whole time"),
    "ttft": gettext_lazy("First token (TTFT)"),
    "ttfb": gettext_lazy("First byte"),
}
CONNECTIONS: Final[Mapping[str, Promise]] = {
    "cold": pgettext_lazy("connection", "cold"),
    "warm": pgettext_lazy("connection", "warm"),
}
PHASES: Final[Mapping[str, str | Promise]] = {
    "dns": "DNS",
    "tcp": "TCP",
    "tls": "TLS",
    "send": gettext_lazy("Send"),
    "wait": gettext_lazy("Wait for the answer"),
    "ttfb": gettext_lazy("First byte"),
    "ttfe": gettext_lazy("First event"),
    "ttft": gettext_lazy("First token (TTFT)"),
    "ttfot": gettext_lazy("First text after reasoning"),
    "transfer": gettext_lazy("Transfer"),
    "total": gettext_lazy("Total"),
}


def outcome_tone(outcome: str) -> str:
    """Return the mark of an outcome."""
    return {"ok": "ok", "skipped": "silenced", "vantage_down": "unknown"}.get(outcome, "critical")


def outcome_word(outcome: str) -> str:
    """Return an outcome in words; one that is not listed as it is."""
    return str(OUTCOMES.get(outcome, outcome))


def kind_word(kind: str) -> str:
    """Return a kind in words."""
    return str(KINDS[kind][0]) if kind in KINDS else kind


def why(result: Mapping[str, Any]) -> str:
    """Return what a result that is not ok says: its code and what the other side said."""
    parts = [str(result.get("reason") or ""), str(result.get("detail") or "")]
    return ": ".join(part for part in parts if part)


def place_names(server_ids: Collection[int]) -> dict[int, str]:
    """Return the names of places, 0 the panel. One query at most."""
    ids = set(server_ids) - {PANEL}
    names = dict(Server.objects.filter(pk__in=ids).values_list("pk", "name")) if ids else {}
    gone = {pk: _("server %(id)s (removed)") % {"id": pk} for pk in ids - set(names)}
    return {PANEL: _("the panel"), **names, **gone}


def vantage_words(vantages: Collection[str], names: Mapping[int, str]) -> list[str]:
    """Return from where a probe looks, in words."""
    told = {"panel": _("the panel"), "agents": _("every agent")}
    return [told.get(name) or _server(name, names) for name in vantages]


def _server(name: str, names: Mapping[int, str]) -> str:
    return names.get(int(name.removeprefix("server:")), name)


def server_ids(vantages: Collection[str]) -> set[int]:
    """Return the servers that are named as places."""
    return {int(name.removeprefix("server:")) for name in vantages if name.startswith("server:")}
