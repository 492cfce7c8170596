"""Sentences about what fires: what was measured against which limit, in the language that is in force."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.alerts.builtin import TITLES

Figures = Mapping[str, Any]
MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 24 * HOUR


def duration(seconds: float | None) -> str:
    """Return a time span in its two largest units."""
    if seconds is None:
        return "—"
    whole = max(int(seconds), 0)
    if whole < MINUTE:
        return _("%(seconds)d s") % {"seconds": whole}
    if whole < HOUR:
        return _("%(minutes)d min") % {"minutes": whole // MINUTE}
    if whole < DAY:
        return _("%(hours)d h %(minutes)d min") % {"hours": whole // HOUR, "minutes": whole % HOUR // MINUTE}
    return _("%(days)d d %(hours)d h") % {"days": whole // DAY, "hours": whole % DAY // HOUR}


def latency(value_ms: float | None) -> str:
    """Return ms below a second, else seconds with two decimals."""
    if value_ms is None:
        return "—"
    return f"{value_ms:.0f} ms" if value_ms < 1000 else f"{value_ms / 1000:.2f} s"


def rule_title(key: str, name: str = "") -> str:
    """Return what a rule is called: by people, else as built in."""
    return name or str(TITLES.get(key, key))


def _count(figures: Figures) -> str:
    if not figures:
        return ""
    values = {
        "over": figures["over"], "n": figures["n"], "limit": latency(figures["limit_ms"]),
        "window": duration(figures["window_seconds"]), "worst": latency(figures["worst_ms"]),
    }  # fmt: skip
    said = _("%(over)s of %(n)s probes over %(limit)s in %(window)s, worst %(worst)s") % values
    failures = figures.get("failures") or 0
    if not failures:
        return said
    failed = ngettext("%(count)d of them failed", "%(count)d of them failed", failures) % {"count": failures}
    return _("%(first)s; %(second)s") % {"first": said, "second": failed}


def _errors(figures: Figures) -> str:
    values = {"over": figures["over"], "n": figures["n"], "window": duration(figures["window_seconds"])}
    return _("%(over)s of %(n)s probes failed in %(window)s") % values


def _down(figures: Figures) -> str:
    if figures.get("is_single"):
        return _("%(count)s failures in a row, seen from the only place that looks") % {"count": figures["failures"]}
    values = {"places": len(figures.get("places", ())), "of": figures.get("of_places", 0)}
    return _("Nothing answers: %(places)s of %(of)s places agree") % values


def _no_data(figures: Figures) -> str:
    return _("No valid probe for more than %(time)s") % {"time": duration(figures.get("after_seconds"))}


def _place(figures: Figures) -> str:
    values = {"bad": figures["bad"], "of": figures["of"]}
    return _("%(bad)s of %(of)s series from there are silent or suspect; nothing is concluded from them") % values


def _agent(figures: Figures) -> str:
    said = _("The agent was not heard for %(time)s") % {"time": duration(figures.get("silent_seconds"))}
    endpoints = figures.get("endpoints")
    if not endpoints:
        return said
    return _("%(first)s; down with it: %(names)s") % {"first": said, "names": ", ".join(endpoints)}


def _certificate(figures: Figures) -> str:
    return _("The certificate ends in %(days)s days") % {"days": figures["days"]}


def _fault(figures: Figures) -> str:
    code = f"XID {figures['code']}" if figures.get("kind") == "xid" else str(figures.get("kind", ""))
    return _("%(code)s, %(count)s times: %(message)s") % {
        "code": code, "count": figures.get("count", 1), "message": figures.get("message", ""),
    }  # fmt: skip


def _missing(figures: Figures) -> str:
    return _("The card is %(state)s") % {"state": figures.get("state", "")}


def _threshold(figures: Figures) -> str:
    values = {
        "series": figures.get("series", ""), "value": number(figures.get("value")), "limit": number(figures.get("limit")),
    }  # fmt: skip
    operator = figures.get("operator")
    if operator == "share":
        share = {"share": f"{100 * figures.get('share', 0):.0f}", "window": duration(figures.get("window_seconds"))}
        return _("%(series)s over %(limit)s for %(share)s %% of %(window)s, now %(value)s") % {**values, **share}
    if operator == "below":
        return _("%(series)s is %(value)s, below %(limit)s") % values
    if operator == "absent":
        return _("%(series)s has no value") % values
    if operator == "changed":
        return _("%(series)s changed to %(value)s") % values
    return _("%(series)s is %(value)s, above %(limit)s") % values


def number(value: float | None) -> str:
    """Return a number for a sentence: at most three significant places after the point, no zeros at the end."""
    return "—" if value is None else f"{value:.6g}"


_SENTENCES: Final[dict[str, Callable[[Figures], str]]] = {
    **dict.fromkeys(("p99_fast", "p99_slow", "p95", "ttft", "tpot"), _count),
    "error_rate": _errors,
    "down": _down,
    "no_data": _no_data,
    "vantage_bad": _place,
    "agent_down": _agent,
    "cert": _certificate,
    "xid": _fault,
    "gpu_missing": _missing,
}


def sentence(key: str, figures: Figures) -> str:
    """Return one sentence on what a rule saw; empty when nothing is known of it."""
    try:
        return _SENTENCES.get(key, _threshold)(figures) if figures else ""
    except (KeyError, TypeError, ValueError):
        # Figures of an older version of the rule: better no sentence than no message.
        return ""
