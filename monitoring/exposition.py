"""Prometheus' text, written line by line: labels are made once for a subject and used for each of its thirty series.

The client library formats labels anew for every sample, which takes a second for a thousand cards.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labels_text(**labels: str) -> str:
    """Return labels as they stand between braces, values escaped."""
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())


def number_text(value: float) -> str:
    """Return a number with seven significant digits for fractions, which is what a 4-byte float holds; integers whole."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.7g}"


@dataclass(frozen=True, slots=True)
class Exposition:
    """Writes families in Prometheus' text format, or in OpenMetrics, which differs in how counters and infos are headed."""

    is_openmetrics: bool

    def gauge(self, name: str, about: str, rows: Iterable[tuple[str, float | None]]) -> str:
        """Return a family of (labels, value); rows without a value are left out, and a family without rows is empty."""
        lines = [f"{name}{{{labels}}} {number_text(value)}" for labels, value in rows if value is not None]
        return self._family(name, "gauge", about, lines)

    def counter(self, name: str, about: str, rows: Iterable[tuple[str, float]]) -> str:
        """Return a family of counters; `name` is without `_total`."""
        lines = [f"{name}_total{{{labels}}} {number_text(value)}" for labels, value in rows]
        return self._family(name if self.is_openmetrics else f"{name}_total", "counter", about, lines)

    def info(self, name: str, about: str, rows: Iterable[str]) -> str:
        """Return a family of facts, each 1; `name` is without `_info`."""
        lines = [f"{name}_info{{{labels}}} 1" for labels in rows]
        if self.is_openmetrics:
            return self._family(name, "info", about, lines)
        return self._family(f"{name}_info", "gauge", about, lines)

    def _family(self, name: str, kind: str, about: str, lines: list[str]) -> str:
        if not lines:
            return ""
        return "\n".join((f"# HELP {name} {about}", f"# TYPE {name} {kind}", *lines, ""))
