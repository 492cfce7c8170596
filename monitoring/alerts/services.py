"""What the clock starts: rounds of the evaluator, built-in rules made, old episodes forgotten."""

from datetime import datetime, timedelta
from typing import Final

import structlog

from monitoring.alerts.builtin import DEFINITIONS
from monitoring.alerts.evaluator import Evaluator, Round
from monitoring.alerts.models import Episode, Rule, Silence

KEPT: Final = timedelta(days=730)
BUDGET_SECONDS: Final = 5.0
SILENCES_KEPT: Final = timedelta(days=7)
log = structlog.get_logger(__name__)
_evaluator: Final = Evaluator()


def rules_ensure(*, at: datetime) -> None:
    """Make rows of built-in rules that have none yet; those that people changed stay as they are."""
    known = set(Rule.objects.filter(is_builtin=True).values_list("key", flat=True))
    missing = [each for each in DEFINITIONS if each.key not in known]
    rows = [Rule(key=each.key, kind=each.kind, is_builtin=True, created_at=at) for each in missing]
    Rule.objects.bulk_create(rows, ignore_conflicts=True)


def alerts_evaluate(*, at: datetime) -> Round | None:
    """Run one round, unless another process is at it."""
    found = _evaluator.evaluate(at=at)
    if found is not None and found.seconds > BUDGET_SECONDS:
        log.warning("alerts.round_slow", seconds=round(found.seconds, 1), outcomes=found.outcomes)
    return found


def alerts_forget(*, at: datetime) -> None:
    """Delete what is older than is kept."""
    Episode.objects.filter(closed_at__lt=at - KEPT).delete()
    Silence.objects.filter(ends_at__lt=at - SILENCES_KEPT).delete()
