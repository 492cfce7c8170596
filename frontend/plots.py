"""Curves as SVG that the server draws: no script needed, sharp at any width, with a table of the same numbers beside it.

The drawing is 1000 by 200 and stretched; words stand around it as HTML, so that they keep their size on a phone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

WIDTH: Final = 1000.0
HEIGHT: Final = 200.0
TICKS: Final = 5
_STEPS: Final = (1, 2, 2.5, 5, 10)
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class Line:
    """One curve. style: its class in the sheet. points: (place, value); a value of None is a gap. gap: places further apart
    than this are not joined.
    """

    label: str
    style: str
    points: Sequence[tuple[float, float | None]]
    gap: float = math.inf


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve as drawn: the data of a path."""

    label: str
    style: str
    path: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Something at a place: a line from top to bottom. title: what it is."""

    x: float
    title: str
    severity: str = "info"


@dataclass(frozen=True, slots=True)
class Band:
    """A part of the time that is shaded. title: what it is."""

    x: float
    width: float
    title: str


@dataclass(slots=True)
class Plot:
    """What the template draws. y_ticks from the top down, x_ticks from the left, evenly spaced. limit: y of the threshold."""

    curves: list[Curve]
    x_ticks: list[str]
    y_ticks: list[str]
    limit: float | None = None
    limit_label: str = ""
    marks: list[Mark] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Say whether there is nothing to be seen."""
        return not any(curve.path for curve in self.curves)


def nice(value: float) -> float:
    """Return the next round number that is at least a value: 1, 2, 2.5, 5 or 10 times a power of ten."""
    if not value > 0:
        return 1.0
    power = float(10 ** math.floor(math.log10(value)))
    return next(step * power for step in _STEPS if step * power >= value * (1 - 1e-9))


def path_of(line: Line, *, begin: float, end: float, top: float) -> str:
    """Return the data of a path; a point alone is a dot, and gaps stay gaps."""
    parts: list[str] = []
    run: list[tuple[float, float]] = []
    before = -math.inf
    for place, value in line.points:
        if run and (value is None or place - before > line.gap):
            parts.append(_joined(run))
            run = []
        if value is not None:
            run.append(((place - begin) / (end - begin) * WIDTH, HEIGHT - min(value / top, 1.0) * HEIGHT))
            before = place
    if run:
        parts.append(_joined(run))
    return "".join(parts)


def _joined(run: Sequence[tuple[float, float]]) -> str:
    first, *others = (f"{x:.1f} {y:.1f}" for x, y in run)
    return f"M{first}" + ("".join(f"L{each}" for each in others) if others else "h.01")


def plot_of(
    lines: Sequence[Line], *, begin: float, end: float, limit: float | None = None, least: float = 0.0
) -> tuple[Plot, float]:
    """Return a plot without words at its axes, and the value at its top. least: the top is not lower than this."""
    values = [value for line in lines for _place, value in line.points if value is not None and math.isfinite(value)]
    top = nice(max([*values, least, (limit or 0.0) * 1.1], default=1.0))
    drawn = [Curve(line.label, line.style, path_of(line, begin=begin, end=end, top=top)) for line in lines]
    return Plot(drawn, [], [], None if limit is None else round(HEIGHT - limit / top * HEIGHT, 1)), top


def time_ticks(start: datetime, end: datetime) -> list[str]:
    """Return evenly spaced times of the viewer's zone, as short as they can be."""
    span = end - start
    pattern = "%H:%M" if span <= timedelta(seconds=_DAY_SECONDS * 1.5) else "%m-%d"
    return [timezone.localtime(start + span * k / (TICKS - 1)).strftime(pattern) for k in range(TICKS)]


def value_ticks(top: float) -> list[float]:
    """Return the values at the left edge, from the top down."""
    return [top * (TICKS - 1 - k) / (TICKS - 1) for k in range(TICKS)]
