"""Words of alerts on pages."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.alerts.enums import Family, Mute
from monitoring.alerts.words import duration

TONES: Final = {"critical": "critical", "warning": "warning", "info": "progress"}
KINDS: Final = {
    "endpoint": gettext_lazy("endpoint"),
    "replica": gettext_lazy("replica"),
    "gpu": gettext_lazy("GPU"),
    "server": gettext_lazy("server"),
    "probe": gettext_lazy("probe"),
    "place": gettext_lazy("place that probes"),
}
TOLD: Final = {
    "opening": gettext_lazy("the beginning"),
    "update": gettext_lazy("that it got worse"),
    "reminder": gettext_lazy("a reminder"),
    "resolved": gettext_lazy("the end"),
    "flapping": gettext_lazy("that it keeps changing"),
}


def family_word(family: str) -> str:
    """Return what an incident is about; a rule of people's own is a family by itself."""
    return str(Family(family).label) if family in Family.values else _("Own rule")


def mute_word(muted_by: str) -> str:
    """Return why nobody is told; empty when they are."""
    return str(Mute(muted_by).label) if muted_by else ""


def entry_sentence(kind: str, data: Mapping[str, Any]) -> str:
    """Return one line of the timeline in words."""
    severities = {"critical": _("Critical"), "warning": _("Warning"), "info": _("Information")}
    if kind == "told":
        what = str(TOLD.get(str(data.get("kind")), data.get("kind")))
        return _("Told %(what)s to %(count)s recipients") % {"what": what, "count": data.get("recipients", 0)}
    if kind == "severity":
        return _("%(before)s became %(after)s") % {
            "before": severities.get(str(data.get("before")), ""), "after": severities.get(str(data.get("after")), ""),
        }  # fmt: skip
    if kind == "muted":
        return _("Nobody is told: %(why)s") % {"why": mute_word(str(data.get("by") or ""))}
    return {
        "fired": _("Began to fire"),
        "refired": _("Fires again"),
        "ceased": _("Does not fire any more"),
        "unmuted": _("People are told again"),
        "frozen": _("No data: it stays as it is"),
        "thawed": _("Data again"),
        "acknowledged": _("Acknowledged"),
        "unacknowledged": _("Acknowledgement taken back"),
        "note": _("Note"),
        "closed": _("Closed: firing again would be another alert"),
    }.get(kind, kind)


def condition_words(definition: Any) -> str:
    """Return what a rule watches, in words."""
    threshold = definition.threshold
    if threshold is None:
        return str(CONDITIONS.get(definition.key, ""))
    values = {
        "series": definition.series, "limit": f"{threshold.limit:g}", "window": duration(threshold.window_seconds),
        "share": f"{100 * threshold.share:.0f}",
    }  # fmt: skip
    return {
        "above": _("%(series)s above %(limit)s"),
        "below": _("%(series)s below %(limit)s"),
        "absent": _("%(series)s has no value"),
        "changed": _("%(series)s changed within %(window)s"),
        "share": _("%(series)s above %(limit)s for %(share)s %% of %(window)s"),
    }[str(threshold.operator)] % values


CONDITIONS: Final = {
    "p99_fast": gettext_lazy("5 of 60 probes over the P99 limit in 30 min, in 3 slots of 5 min; or 8 of the last 10"),
    "p99_slow": gettext_lazy("18 of 720 probes over the P99 limit in 6 h, in 6 half-hours, 2 of them in the last hour"),
    "p95": gettext_lazy("25 of 240 probes over the P95 limit in 2 h, or 14 of 60 in 30 min"),
    "ttft": gettext_lazy("As the fast P99 rule, for the first token"),
    "tpot": gettext_lazy("5 of 60 answers slower for each token than the limit"),
    "error_rate": gettext_lazy("5 of 60 probes failed in 30 min, in 3 slots; critical when 4 of the last 20 did"),
    "down": gettext_lazy("3 failures in a row from 2 places; 5 in a row where only one place looks"),
    "no_data": gettext_lazy("No valid probe for 5 intervals, 5 min at least"),
    "vantage_bad": gettext_lazy("4 of 5 series of a place are silent or suspect"),
    "agent_down": gettext_lazy("The agent was not heard for 3 min"),
    "cert": gettext_lazy("21, 7 or 1 days until the certificate ends"),
    "xid": gettext_lazy("A fault of the card within the last 10 min"),
    "gpu_missing": gettext_lazy("The card is lost or missing"),
}
