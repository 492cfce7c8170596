"""A page in Prometheus' text format as samples by name; a broken line costs that line, not the page."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

MAX_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: its labels and its value, which may be NaN or infinite."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Page:
    """All samples by their full name (with _total, _bucket, _sum, _count), and how many lines could not be read."""

    samples: Mapping[str, list[Sample]] = field(default_factory=dict)
    bad_lines: int = 0


def read_page(text: str) -> Page:
    """Read a page of at most MAX_BYTES; what is beyond is cut at a line.

    prometheus_client reads exponents with leading zeros, NaN, +Inf, times at a line's end, stray comments and blank lines, but
    one line that it cannot read fails the whole page. So such a page is read line by line. Comments are dropped before: it
    would rename a counter by its type (Triton's have no _total).
    """
    if len(text) > MAX_BYTES:
        text = text[:MAX_BYTES].rpartition("\n")[0]
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    try:
        return Page(_samples(lines))
    except ValueError:
        return _line_by_line(lines)


def _samples(lines: Sequence[str]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = defaultdict(list)
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            found[sample.name].append(Sample(sample.labels, float(sample.value)))
    return dict(found)


def _line_by_line(lines: Sequence[str]) -> Page:
    found: dict[str, list[Sample]] = defaultdict(list)
    bad = 0
    for line in lines:
        try:
            for name, samples in _samples([line]).items():
                found[name] += samples
        except ValueError:
            bad += 1
    return Page(dict(found), bad)
