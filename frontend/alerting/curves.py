"""The chart of an alert: its series with the limit, and the time in which it fired shaded."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext as _

from frontend.plots import WIDTH, Band, Line, Plot, plot_of, time_ticks, value_ticks
from frontend.probing.curves import history
from monitoring.alerts.models import Episode
from monitoring.alerts.words import number
from monitoring.probing.models import Probe
from monitoring.selectors import series
from monitoring.store.tables import KINDS

BEFORE: Final = timedelta(hours=2)
AFTER: Final = timedelta(hours=1)
POINTS: Final = 240


def episode_plot(episode: Episode, *, at: datetime) -> Plot | None:
    """Return the chart of the first rule that has one; None when nothing of it is recorded over time."""
    start = episode.opened_at - BEFORE
    end = min((episode.resolved_at or at) + AFTER, at)
    for figures in episode.evidence.values():
        plot = _plot(episode, figures, start, end) if isinstance(figures, dict) else None
        if plot is not None:
            plot.bands.append(_band(episode, start, end))
            return plot
    return None


def _plot(episode: Episode, figures: dict[str, Any], start: datetime, end: datetime) -> Plot | None:
    if figures.get("probe"):
        probe = Probe.objects.filter(pk=figures["probe"]).first()
        if probe is None:
            return None
        limit = figures.get("limit_ms")
        shown = probe if limit is None else _limited(probe, limit)
        place = (int(figures.get("place") or 0), str(figures.get("connection") or "cold"))
        return history(shown, place=place, start=start, end=end).plot
    name = str(figures.get("series") or "")
    return _series_plot(episode, name, figures.get("limit"), start, end) if name else None


def _limited(probe: Probe, limit: float) -> Probe:
    """Return the probe with the limit that the rule went by, not saved."""
    probe.threshold_ms = limit
    return probe


def _series_plot(episode: Episode, name: str, limit: float | None, start: datetime, end: datetime) -> Plot | None:
    kind, _dot, metric = name.partition(".")
    known = next((each for each in KINDS if each.name == kind), None)
    if known is None or metric not in known.columns or kind != episode.subject_kind:
        return None
    found = series(
        kind=kind, subject_ids=[episode.subject_id], metrics=[metric], start=start, end=end, points=POINTS  # type: ignore[arg-type]
    )  # fmt: skip
    values = found.series[0].average if found.series else np.empty(0)
    step = found.step_seconds
    points = [
        (found.from_ms / 1000 + step * (index + 0.5), None if np.isnan(value) else float(value))
        for index, value in enumerate(values.tolist())
    ]
    plot, top = plot_of(
        [Line(metric, "p50", points, gap=step * 2.5)], begin=start.timestamp(), end=end.timestamp(), limit=limit
    )
    plot.x_ticks, plot.y_ticks = time_ticks(start, end), [number(value) for value in value_ticks(top)]
    if limit is not None:
        plot.limit_label = _("limit %(limit)s") % {"limit": number(limit)}
    return replace(plot)


def _band(episode: Episode, start: datetime, end: datetime) -> Band:
    span = (end - start).total_seconds()
    first = (episode.opened_at - start).total_seconds() / span * WIDTH
    last = ((episode.resolved_at or end) - start).total_seconds() / span * WIDTH
    return Band(round(first, 1), round(max(last - first, 2.0), 1), _("It fired"))
