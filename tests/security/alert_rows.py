"""One of everything that alerts have, and what its writes need."""

from datetime import timedelta

from monitoring.alerts.models import Episode, Rule, RuleOverride, Silence
from panel.core.clock import now

_MATCHERS = {"family": "latency"}


def alert_rows(row):
    """Make the rows."""
    at = now()
    rule = Rule.objects.create(
        pk=row, key="own-x", name="hot", kind="threshold", severity="warning", created_at=at,
        settings={"series": "gpu.temperature_celsius", "operator": "above", "limit": 90},
    )  # fmt: skip
    RuleOverride.objects.create(
        pk=row, rule=rule, label_name="team", label_value="a", created_at=at, created_by_name="ada"
    )
    Episode.objects.create(
        pk=row, family="latency", subject_kind="endpoint", subject_id=row, subject_name="chat", severity="critical",
        rules=["p99_fast"], opened_at=at, changed_at=at, incident={},
    )  # fmt: skip
    Silence.objects.create(
        pk=row, matchers=_MATCHERS, reason="known", starts_at=at, ends_at=at + timedelta(hours=1), created_at=at,
        created_by_name="ada",
    )  # fmt: skip


ALERT_WRITES = {
    "post alert-acknowledge": ({}, "alert.acknowledge"),
    "post alert-unacknowledge": ({}, "alert.unacknowledge"),
    "post alert-note": ({"text": "looked at it"}, "alert.note"),
    "post alert-rule-list": (
        {"name": "hot", "settings": {"series": "gpu.temperature_celsius", "operator": "above", "limit": 90}},
        "alert_rule.create",
    ),
    "patch alert-rule-detail": ({"is_enabled": False}, "alert_rule.update"),
    "delete alert-rule-detail": ({}, "alert_rule.delete"),
    "post alert-rule-override": (
        {"label_name": "team", "label_value": "b", "is_enabled": False},
        "alert_rule.override",
    ),
    "delete alert-rule-override-remove": ({}, "alert_rule.override_remove"),
    "post silence-list": (
        {"matchers": _MATCHERS, "reason": "known", "ends_at": (now() + timedelta(days=1)).isoformat()},
        "silence.create",
    ),
    "post silence-end": ({}, "silence.end"),
}
# Asked by POST because they carry more than an address holds; nothing changes.
ALERT_QUESTIONS = {"post silence-preview", "post alert-rule-preview"}
