"""Episodes in words for messages: what, where, since when, how bad, what to do."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from monitoring.alerts.words import duration, rule_title, sentence
from monitoring.delivery.outbox import Told

# The rule that names an incident when several fire.
_ORDER: Final = (
    "down",
    "error_rate",
    "p99_fast",
    "ttft",
    "p99_slow",
    "tpot",
    "p95",
    "gpu_missing",
    "xid",
    "agent_down",
)


def leading_rule(rules: list[str]) -> str:
    """Return the rule that an incident is named by."""
    known = [key for key in _ORDER if key in rules]
    return known[0] if known else (rules[0] if rules else "")


def what_now(rules: list[str]) -> str:
    """Return one next step."""
    steps = {
        "down": _("Look at the replicas and at the last lines of their logs."),
        "error_rate": _("Look at which phase fails: the probe's results name it."),
        "p99_fast": _("Ask for a diagnosis on the endpoint's page: it tells network, queue and compute apart."),
        "no_data": _("See whether the places that probe are well, and whether the probe is paused."),
        "agent_down": _("See whether the machine runs at its provider, then whether it reaches the panel."),
        "xid": _("Open the card's page: it says what this fault asks for."),
        "gpu_missing": _("Restart the machine; if the card stays away, report it to the provider."),
        "queueing": _("Add a replica, or lower the concurrency of callers."),
        "throttle": _("Look at the reasons on the card's page: heat and power are the provider's to mend."),
    }
    steps |= dict.fromkeys(("p99_slow", "p95", "ttft", "tpot"), steps["p99_fast"])
    return steps.get(leading_rule(rules), _("Open the alert: it shows the series with its limit."))


def tell(facts: Mapping[str, Any], language: str) -> Told:  # noqa: ARG001 (it is in force already)
    """Put what was announced of an episode into words; see monitoring.alerts.facts.episode_facts."""
    rules = list(facts.get("rules") or [])
    leading = leading_rule(rules)
    evidence = facts.get("evidence") or {}
    names = facts.get("names") or {}
    title = rule_title(leading, names.get(leading, ""))
    subject = f"{facts.get('subject_name', '')}: {title} #{facts.get('episode')}"
    return Told(
        subject=subject,
        first_line=_first_line(facts, leading, evidence),
        rows=tuple(_rows(facts, rules, leading, evidence, names)),
        links=((_("Open the alert"), f"/alerts/{facts.get('episode')}/"), (_("Rules"), "/alerts/rules/")),
    )


def _first_line(facts: Mapping[str, Any], leading: str, evidence: Mapping[str, Any]) -> str:
    name, said = facts.get("subject_name", ""), sentence(leading, evidence.get(leading) or {})
    time = duration(facts.get("seconds"))
    if facts.get("kind") in {"resolved", "recovered"}:
        return _("%(name)s is well again after %(time)s.") % {"name": name, "time": time}
    if facts.get("kind") == "flapping":
        return _(
            "%(name)s keeps changing between firing and well; there is no more about it until it stands still."
        ) % {"name": name}
    if facts.get("kind") == "reminder":
        return _("%(name)s still fires after %(time)s: %(said)s.") % {"name": name, "time": time, "said": said}
    return _("%(name)s: %(said)s.") % {"name": name, "said": said or rule_title(leading)}


def _rows(
    facts: Mapping[str, Any],
    rules: list[str],
    leading: str,
    evidence: Mapping[str, Any],
    names: Mapping[str, str],
) -> list[tuple[str, str]]:
    rows = [(_("Since"), str(facts.get("opened_at") or ""))]
    if facts.get("kind") in {"resolved", "recovered"}:
        rows = [*rows, (_("Until"), str(facts.get("resolved_at") or "")), (_("Lasted"), duration(facts.get("seconds")))]
    for key in [leading, *(each for each in rules if each != leading)]:
        said = sentence(key, evidence.get(key) or {})
        if said:
            rows.append((rule_title(key, names.get(key, "")), said))
    for line in evidence.get("lines") or []:
        rows.append((_("At the same time"), f"{line['subject']}: {rule_title(line['rule'])}"))
    if facts.get("no_data_since"):
        rows.append((_("No data since"), str(facts["no_data_since"])))
    if facts.get("kind") not in {"resolved", "recovered"}:
        rows.append((_("What to do"), what_now(rules)))
    rows.append(
        (
            _("Why you got this"),
            _("The rule “%(rule)s” watches it.") % {"rule": rule_title(leading, names.get(leading, ""))},
        )
    )
    return rows
