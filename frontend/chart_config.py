"""What the browser needs to draw the charts of a page: lines, axes, limits, markers. Pure, JSON-ready."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _

from frontend import formatting
from frontend.chart_specs import Chart, Choice, Line

HOST_PREFIX: Final = "host."
KIND_OF_UNIT: Final = {
    "percent": "percent",
    "bytes": "gib",
    "bytes_per_second": "mb_per_second",
    "watts": "watts",
    "celsius": "celsius",
    "mhz": "mhz",
    "load": "load",
    "per_second": "per_second",
    "milliseconds": "latency",
    "requests": "count",
}
# The subjects that each source of a choice draws.
_SUBJECT_KINDS: Final = {"gpu": "gpu", "host": "server", "traffic": "endpoint"}
# Two limits can be told apart on a chart; more than that are no help.
MOST_THRESHOLDS: Final = 2
ROOM_ABOVE_LIMIT: Final = 1.15
ROOM_ABOVE_SLOWDOWN_CELSIUS: Final = 12
CEILING_WITHOUT_SLOWDOWN_CELSIUS: Final = 100.0


@dataclass(frozen=True, slots=True)
class Subject:
    """One card, a server's host or an endpoint, whose metrics become lines. values: its newest readings; totals: host facts."""

    kind: str
    id: int
    label: str
    short: str
    values: Mapping[str, float | None] = field(default_factory=dict)
    memory_total_bytes: int | None = None
    power_limit_watts: float | None = None
    slowdown_celsius: float | None = None
    totals: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return what the browser calls it."""
        return f"{self.kind}:{self.id}"


def subjects_of(choice: Choice, subjects: Iterable[Subject]) -> list[Subject]:
    """Return the subjects that a choice draws."""
    kind = _SUBJECT_KINDS[choice.source]
    return [subject for subject in subjects if subject.kind == kind]


def wire_metric(choice: Choice, line: Line) -> str:
    """Return the metric as the series API calls it."""
    return f"{HOST_PREFIX}{line.metric}" if choice.source == "host" else line.metric


def scale_of(line: Line, subject: Subject) -> float:
    """Return what values are multiplied by as they are drawn: 100 / total for a share in percent, else 1."""
    return 100 / subject.totals[line.total] if line.total else 1.0


def lines_drawn(choice: Choice, subject: Subject) -> list[Line]:
    """Return the lines that can be drawn of a subject: a share of something waits until that is known."""
    return [line for line in choice.lines if not line.total or subject.totals.get(line.total)]


def available(chart: Chart, subjects: Sequence[Subject]) -> tuple[Choice, ...]:
    """Return what the chart can show: metrics that some card gives. A subject that never reported rules nothing out."""
    found = []
    for choice in chart.choices:
        drawn = subjects_of(choice, subjects)
        if any(not subject.values for subject in drawn) or any(
            subject.values.get(line.metric) is not None for subject in drawn for line in choice.lines
        ):
            found.append(choice)
    return tuple(found)


def chart_config(chart: Chart, subjects: Sequence[Subject]) -> dict[str, Any]:
    """Return one chart for the browser; `choices` is empty when no card gives any of its metrics."""
    return {"id": chart.id, "choices": [_choice(choice, subjects) for choice in available(chart, subjects)]}


def _choice(choice: Choice, subjects: Sequence[Subject]) -> dict[str, Any]:
    drawn = subjects_of(choice, subjects)
    return {
        "key": choice.key,
        "label": str(choice.label),
        "unit": choice.unit,
        "minimum": choice.floor,
        "maximum": _ceiling(choice, drawn),
        "lines": lines_of(choice, drawn),
        "thresholds": _thresholds(choice, drawn) if choice.has_threshold else [],
    }


def lines_of(choice: Choice, drawn: Sequence[Subject]) -> list[dict[str, Any]]:
    """Return the lines of a choice in the order of drawing, coloured by subject, or by metric when there is one subject."""
    lines = []
    for at, subject in enumerate(drawn):
        for line in lines_drawn(choice, subject):
            entry: dict[str, Any] = {
                "subject": subject.key,
                "metric": wire_metric(choice, line),
                "label": _label(choice, line, subject, len(drawn)),
                "short": subject.short if len(drawn) > 1 else str(line.name),
                "colour": at * len(choice.lines) + choice.lines.index(line) if line.colour is None else line.colour,
            }
            if line.total:
                entry["scale"] = scale_of(line, subject)
            if line.dash is not None:
                entry["dash"] = line.dash
            lines.append(entry)
    return lines


def _label(choice: Choice, line: Line, subject: Subject, count: int) -> str:
    if len(choice.lines) == 1:
        return subject.label
    return str(line.name) if count == 1 else f"{subject.label} · {line.name}"


def _ceiling(choice: Choice, drawn: Sequence[Subject]) -> float | None:
    if choice.ceiling == "memory":
        return max((subject.memory_total_bytes or 0 for subject in drawn), default=0) or None
    if choice.ceiling == "power":
        limit = max((subject.power_limit_watts or 0 for subject in drawn), default=0)
        return limit * ROOM_ABOVE_LIMIT or None
    if choice.ceiling == "slowdown":
        limits = [subject.slowdown_celsius for subject in drawn if subject.slowdown_celsius]
        return max(limits) + ROOM_ABOVE_SLOWDOWN_CELSIUS if limits else CEILING_WITHOUT_SLOWDOWN_CELSIUS
    return choice.ceiling


def _thresholds(choice: Choice, drawn: Sequence[Subject]) -> list[dict[str, Any]]:
    if choice.ceiling == "slowdown":
        limits = {subject.slowdown_celsius for subject in drawn if subject.slowdown_celsius}
        text, kind = _("slows down at %(limit)s"), "celsius"
    else:
        limits = {subject.power_limit_watts for subject in drawn if subject.power_limit_watts}
        text, kind = _("limit %(limit)s"), "watts"
    return [
        {"value": limit, "label": text % {"limit": formatting.with_unit(limit, kind)}}
        for limit in sorted(limits)[-MOST_THRESHOLDS:]
    ]
