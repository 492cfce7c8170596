"""The data of charts in words and rows: one sentence for each chart, and the table that says the same as the lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final, Literal

import numpy as np
from django.utils import timezone
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from endpoints.traffic_series import traffic_series
from frontend import formatting
from frontend.chart_config import KIND_OF_UNIT, Subject, available, lines_drawn, lines_of, scale_of, subjects_of
from frontend.chart_specs import Chart, Choice
from frontend.ranges import TimeRange
from monitoring.selectors import SeriesResult, series

Values = NDArray[np.float64]
SUMMARY_POINTS: Final = 120
DAY: Final = timedelta(days=1)
# As many as the browser draws (static/js/charts/window.js).
MOST_POINTS: Final = 460
# The newest reading tells of now when it is no older than this many buckets.
_NOW_BUCKETS: Final = 3


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """One line of a chart: means and peaks of each bucket, NaN for gaps, scaled as drawn."""

    label: str
    short: str
    mean: Values
    peak: Values


@dataclass(frozen=True, slots=True)
class DrawnChoice:
    """What a chart shows, as numbers on a grid."""

    choice: Choice
    from_ms: int
    step_seconds: int
    lines: Sequence[DrawnLine]

    def at(self, bucket: int) -> datetime:
        """Return when a bucket begins."""
        return datetime.fromtimestamp(self.from_ms / 1000 + bucket * self.step_seconds, tz=UTC)


def points_for(seconds: float, interval_seconds: float) -> int:
    """Return how many points to ask for: none finer than readings come, as the store repeats each until the next."""
    return min(MOST_POINTS, ceil(seconds / max(interval_seconds, 1)) + 1)


def _read(
    choices: Sequence[Choice], subjects: Sequence[Subject], shown: TimeRange, points: int
) -> dict[str, SeriesResult]:
    """Read what all the choices need, by source: one call for the cards, one for the host, one for an endpoint's traffic."""
    results: dict[str, SeriesResult] = {}
    kinds: tuple[Literal["gpu", "server"], ...] = ("gpu", "server")
    for kind in kinds:
        source = "gpu" if kind == "gpu" else "host"
        wanted = [choice for choice in choices if choice.source == source]
        metrics = list(dict.fromkeys(line.metric for choice in wanted for line in choice.lines))
        ids = [subject.id for subject in subjects if subject.kind == kind]
        if metrics and ids:
            results[source] = series(
                kind=kind, subject_ids=ids, metrics=metrics, start=shown.start, end=shown.end, points=points
            )
    metrics = [line.metric for choice in choices if choice.source == "traffic" for line in choice.lines]
    for subject in subjects:
        if metrics and subject.kind == "endpoint":
            results["traffic"] = traffic_series(
                endpoint_id=subject.id, metrics=metrics, start=shown.start, end=shown.end, points=points
            )
    return results


def drawn(
    choices: Sequence[Choice], subjects: Sequence[Subject], shown: TimeRange, points: int
) -> dict[str, DrawnChoice]:
    """Return each choice's lines by its key."""
    results = _read(choices, subjects, shown, points)
    return {choice.key: _drawn(choice, subjects, results) for choice in choices}


def _drawn(choice: Choice, subjects: Sequence[Subject], results: Mapping[str, SeriesResult]) -> DrawnChoice:
    result = results.get(choice.source)
    if result is None:
        return DrawnChoice(choice, 0, 1, [])
    found = {(one.subject_id, one.metric): one for one in result.series}
    chosen = subjects_of(choice, subjects)
    names = iter(lines_of(choice, chosen))
    lines = []
    for subject in chosen:
        for line in lines_drawn(choice, subject):
            name, one, scale = next(names), found[subject.id, line.metric], scale_of(line, subject)
            mean, peak = one.average.astype(np.float64) * scale, one.maximum.astype(np.float64) * scale
            lines.append(DrawnLine(name["label"], name["short"], mean, peak))
    return DrawnChoice(choice, result.from_ms, result.step_seconds, lines)


def summaries_of(charts: Sequence[Chart], subjects: Sequence[Subject], shown: TimeRange) -> dict[str, str]:
    """Return a sentence for each chart, about what it shows first."""
    firsts = {chart.id: choices[0] for chart in charts if (choices := available(chart, subjects))}
    data = drawn(list(firsts.values()), subjects, shown, SUMMARY_POINTS)
    sentences = {chart_id: summary(data[choice.key], shown) for chart_id, choice in firsts.items()}
    return {
        chart.id: sentences.get(chart.id) or _("Not available: no card here offers these readings.") for chart in charts
    }


def summary(data: DrawnChoice, shown: TimeRange) -> str:
    """Return one sentence: what is now, and the highest of the range, with its time."""
    lines = [line for line in data.lines if not np.isnan(line.mean).all()]
    if not lines:
        return _("No readings in %(range)s.") % {"range": shown.words}
    newest = max(int(np.flatnonzero(~np.isnan(line.mean))[-1]) for line in lines)
    return f"{_present(data, lines, newest, is_live=shown.is_live)} {_peak(data, lines, shown)}"


def _present(data: DrawnChoice, lines: Sequence[DrawnLine], newest: int, *, is_live: bool) -> str:
    is_now = is_live and newest >= len(lines[0].mean) - _NOW_BUCKETS
    when = _("Now") if is_now else _("Last, at %(time)s,") % {"time": _clock(data.at(newest), long=True)}
    # A line that ended earlier (a card that is gone) says nothing of the present.
    recent = [(line, line.mean[max(0, newest - _NOW_BUCKETS) : newest + 1]) for line in lines]
    values = [(line, float(some[~np.isnan(some)][-1])) for line, some in recent if not np.isnan(some).all()]
    if len(data.lines) == len(data.choice.lines) == 1:
        return _("%(when)s %(value)s.") % {"when": when, "value": _figure(data, values[0][1])}
    if len(values) == 1 or (len(data.choice.lines) > 1 and not data.choice.adds_up):
        each = ", ".join(f"{line.label} {_figure(data, value)}" for line, value in values[:4])
        return _("%(when)s %(values)s.") % {"when": when, "values": each}
    return _together(data, values, when)


def _together(data: DrawnChoice, values: Sequence[tuple[DrawnLine, float]], when: str) -> str:
    total = sum(value for _line, value in values)
    highest, most = max(values, key=lambda pair: pair[1])
    words = {"when": when, "name": highest.short or highest.label, "most": _figure(data, most)}
    if data.choice.adds_up:
        text = _("%(when)s %(value)s together; %(name)s highest with %(most)s.")
        return text % {**words, "value": _figure(data, total)}
    text = _("%(when)s %(value)s on average; %(name)s highest with %(most)s.")
    return text % {**words, "value": _figure(data, total / len(values))}


def _peak(data: DrawnChoice, lines: Sequence[DrawnLine], shown: TimeRange) -> str:
    line = max(lines, key=lambda one: float(np.nanmax(one.peak)))
    bucket = int(np.nanargmax(line.peak))
    time = _clock(data.at(bucket), long=shown.end - shown.start > DAY)
    name = (line.short or line.label) if len(lines) > 1 else ""
    words = {"value": _figure(data, float(line.peak[bucket])), "time": time, "name": name, "range": shown.words}
    if name:
        return _("Highest in %(range)s: %(value)s (%(name)s) at %(time)s.") % words
    return _("Highest in %(range)s: %(value)s at %(time)s.") % words


def _figure(data: DrawnChoice, value: float) -> str:
    return formatting.with_unit(value, KIND_OF_UNIT[data.choice.unit])


def _clock(at: datetime, *, long: bool) -> str:
    return timezone.localtime(at).strftime("%m-%d %H:%M" if long else "%H:%M:%S")


@dataclass(frozen=True, slots=True)
class TableRow:
    """One bucket: when, and each line's mean and peak (None for a gap)."""

    at: datetime
    cells: Sequence[tuple[float | None, float | None]]


def table_rows(data: DrawnChoice) -> list[TableRow]:
    """Return the buckets that hold something, the newest first."""
    if not data.lines:
        return []
    means = np.stack([line.mean for line in data.lines])
    peaks = np.stack([line.peak for line in data.lines])
    filled = np.flatnonzero(~np.isnan(means).all(axis=0))[::-1]
    return [
        TableRow(
            data.at(int(bucket)),
            [(_known(mean), _known(peak)) for mean, peak in zip(means[:, bucket], peaks[:, bucket], strict=True)],
        )
        for bucket in filled
    ]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def choice_shown(chart: Chart, subjects: Sequence[Subject], key: str) -> Choice | None:
    """Return the choice that an address names, else the first; None when the chart has nothing to show."""
    choices = available(chart, subjects)
    return next((choice for choice in choices if choice.key == key), choices[0] if choices else None)
