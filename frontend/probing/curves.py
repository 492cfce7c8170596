"""A probe's percentiles over time: each line in steps that are long enough for what it says."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from frontend.events.rows import Row as EventRow
from frontend.formatting import with_unit
from frontend.plots import WIDTH, Line, Mark, Plot, plot_of, time_ticks, value_ticks
from monitoring.percentiles import Percentile, fewest
from monitoring.probing.models import Probe
from monitoring.probing.reading import latency_series
from monitoring.probing.tables import CHUNK_SECONDS

RANGES: Final = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
}
MOST_POINTS: Final = 96
ROWS: Final = 60
_STYLES: Final = ((0.5, "P50", "p50"), (0.95, "P95", "p95"), (0.99, "P99", "p99"))


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of the table beside the plot."""

    at: datetime
    percentiles: Sequence[Percentile]

    @property
    def n(self) -> int:
        """Return how many results it is of."""
        return self.percentiles[0].n


@dataclass(frozen=True, slots=True)
class History:
    """The plot of one place and connection with its table. steps: by percentile, seconds of a step."""

    plot: Plot
    rows: Sequence[StepRow]
    steps: Sequence[tuple[str, float]]


def step_points(seconds: float, interval_seconds: float, q: float) -> int:
    """Return into how many steps a range is cut so that each holds enough results for a percentile, 96 at most."""
    needed = max(fewest(q) * interval_seconds * 1.1, CHUNK_SECONDS)
    return max(min(int(seconds // needed), MOST_POINTS), 1)


def history(
    probe: Probe, *, place: tuple[int, str], start: datetime, end: datetime, events: Sequence[EventRow] = ()
) -> History:
    """Return how a place's percentiles went. Three queries, all exact: no percentile is made of others."""
    asked: dict[str, Any] = {"probe_id": probe.pk, "metric": probe.metric, "start": start, "end": end}
    seconds = (end - start).total_seconds()
    lines: list[Line] = []
    steps: list[tuple[str, float]] = []
    rows: list[StepRow] = []
    for at, (q, label, style) in enumerate(_STYLES):
        step, found = latency_series(**asked, points=step_points(seconds, probe.interval_seconds, q))
        series = found.get(place, [])
        lines.append(Line(label, style, [_point(when, one[at], step) for when, one in series], gap=step * 1.5))
        steps.append((label, float(step)))
        if not rows:
            rows = [StepRow(when, one) for when, one in series]
    plot, top = plot_of(lines, begin=start.timestamp(), end=end.timestamp(), limit=probe.threshold_ms)
    plot.x_ticks, plot.y_ticks = time_ticks(start, end), [with_unit(value, "latency") for value in value_ticks(top)]
    if probe.threshold_ms is not None:
        plot.limit_label = _("limit %(limit)s") % {"limit": with_unit(probe.threshold_ms, "latency")}
    plot.marks = [_mark(event, start, end) for event in events]
    return History(plot, list(reversed(rows))[:ROWS], steps)


def _point(at: datetime, found: Percentile, step: int) -> tuple[float, float | None]:
    """Return where a step's value stands (in its middle); one that too few results are behind, or failures, has none."""
    is_shown = found.is_enough and found.value_ms is not None and found.value_ms < float("inf")
    return at.timestamp() + step / 2, found.value_ms if is_shown else None


def _mark(event: EventRow, start: datetime, end: datetime) -> Mark:
    share = (event.at - start) / (end - start)
    return Mark(round(min(max(share, 0.0), 1.0) * WIDTH, 1), event.sentence, event.severity)
