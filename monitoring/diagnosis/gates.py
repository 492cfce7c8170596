"""The gates before any cause is looked for: enough rounds, a vantage point to be trusted, an endpoint that answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from monitoring.diagnosis.columns import Kept
from monitoring.diagnosis.enums import Verdict
from monitoring.diagnosis.evidence import Probed, Round
from monitoring.percentiles import breaches_needed

FEWEST_ROUNDS: Final = 30
MOST_ERRORS: Final = 0.05
LONG_LAG_MS: Final = 20.0
MOST_SLOW_CONTROLS: Final = 0.05
FEWEST_SLOW_CONTROLS: Final = 2


@dataclass(frozen=True, slots=True)
class VantageHealth:
    """How a vantage point itself was. lagging: rounds in which one of its processes woke up late, began late or was offline."""

    rounds: int
    lagging: int
    controls: int
    slow_controls: int

    @property
    def is_bad(self) -> bool:
        """Whether its figures are about itself: its lag's 99th percentile is over 20 ms beyond doubt, or the control is slow.

        "Beyond doubt" by the exact binomial test at 1 %: a single late round of forty proves nothing and is put aside.
        """
        is_lagging = self.rounds > 0 and self.lagging >= breaches_needed(self.rounds, q=0.99, alpha=0.01)
        is_slow = self.slow_controls >= FEWEST_SLOW_CONTROLS and self.slow_controls > MOST_SLOW_CONTROLS * self.controls
        return is_lagging or is_slow


def vantage_health(rounds: Sequence[Round], control_slow_ms: float) -> VantageHealth:
    """Return how the vantage point itself was during its rounds."""
    controls = [entry.control for entry in rounds if entry.control is not None]
    return VantageHealth(
        rounds=len(rounds),
        lagging=sum(_lags(entry.cold) or _lags(entry.host) for entry in rounds),
        controls=len(controls),
        slow_controls=sum(probe.total_ms is None or probe.total_ms > control_slow_ms for probe in controls),
    )


def gate(kept: Kept, health: VantageHealth) -> Verdict | None:
    """Return the verdict of the first gate that is shut; None when causes can be looked for."""
    if health.rounds < FEWEST_ROUNDS:
        return Verdict.NOT_ENOUGH_DATA
    if health.is_bad:
        return Verdict.VANTAGE_BAD
    if kept.n < FEWEST_ROUNDS:
        return Verdict.NOT_ENOUGH_DATA
    if max(kept.errors_outside, kept.errors_host) > MOST_ERRORS * kept.n:
        return Verdict.AVAILABILITY
    return Verdict.NOT_ENOUGH_DATA if kept.pairs < FEWEST_ROUNDS else None


def _lags(probe: Probed) -> bool:
    return probe.is_suspect or probe.outcome == "vantage_down" or (probe.loop_lag_ms or 0.0) > LONG_LAG_MS
