"""What a rule is, once its built-in definition, its own settings and what differs for a subject are laid over each other."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from monitoring.alerts.conditions.counting import CountRule
from monitoring.alerts.conditions.thresholds import Operator, Threshold
from monitoring.alerts.enums import RuleKind
from monitoring.alerts.incident import DEFAULT, LATENCY, Policy
from monitoring.alerts.machine import Holding
from panel.core.enums import Severity

# Of what a count rule looks at: the probe's own metric, one by name, or whether it failed at all.
OWN, FAILED = "own", "failed"


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule in full.

    series: `kind.metric` of a threshold rule, see monitoring/alerts/series.py. metric, limit_ms: of a count rule, the limit
    None where the probe's own is meant, times `limit_factor`. is_digest: collected, not told at once. is_evidence: never an
    incident of its own, only a line of one that is open.
    """

    key: str
    kind: RuleKind
    family: str
    severity: Severity
    holding: Holding = field(default_factory=Holding)
    count: CountRule | None = None
    metric: str = OWN
    limit_ms: float | None = None
    limit_factor: float = 1.0
    threshold: Threshold | None = None
    series: str = ""
    is_digest: bool = False
    is_evidence: bool = False

    @property
    def subject_kind(self) -> str:
        """Return the kind of the subjects of a threshold rule."""
        return self.series.partition(".")[0]

    @property
    def policy(self) -> Policy:
        """Return how much of it is told."""
        return LATENCY if self.family == "latency" else DEFAULT


_THRESHOLD: Final[tuple[str, ...]] = (
    "clear",
    "share",
    "clear_share",
    "window_seconds",
    "stale_seconds",
    "samples",
    "limit",
)
_HOLDING: Final[tuple[str, ...]] = ("for_seconds", "clear_seconds")


def laid_over(definition: Definition, settings: dict[str, Any], severity: str = "") -> Definition:
    """Return the definition with what differs. Unknown names are left: they were checked when they were saved."""
    changes: dict[str, Any] = {name: settings[name] for name in ("limit_ms", "is_digest", "series") if name in settings}
    holding = {name: settings[name] for name in _HOLDING if name in settings}
    if "no_data" in settings:
        holding["is_absence_breach"] = settings["no_data"] == "alert"
    if holding:
        changes["holding"] = replace(definition.holding, **holding)
    threshold = {name: settings[name] for name in _THRESHOLD if name in settings}
    if "operator" in settings:
        threshold["operator"] = Operator(settings["operator"])
    if threshold:
        base = definition.threshold or Threshold(Operator.ABOVE)
        changes["threshold"] = replace(base, **threshold)
    if severity:
        changes["severity"] = Severity(severity)
    return replace(definition, **changes) if changes else definition
