"""The live topic `golive.<id>`: how far a test is."""

from typing import Any

from monitoring.golive_runs.models import GoLivePart, GoLiveRun
from panel.core.live import LiveData, publish_later


def run_live(run: GoLiveRun) -> LiveData:
    """Return a run with its places as the live topic tells them. One query."""
    parts = {str(part.pk): part_live(part) for part in run.parts.order_by("pk")}
    return {"golive": {str(run.pk): {"state": str(run.state), "outcome": run.outcome}}, "parts": parts}


def part_live(part: GoLivePart) -> dict[str, Any]:
    """Return how far one place is."""
    return {
        "state": str(part.state),
        "phase": part.phase,
        "seconds": part.seconds,
        "sent": part.sent,
        "failed": part.failed,
        "loop_lag_ms": part.loop_lag_ms,
    }


def run_tell(run: GoLiveRun) -> None:
    """Tell browsers once the transaction commits."""
    publish_later(f"golive.{run.pk}", run_live(run))
