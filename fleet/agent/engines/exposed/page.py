"""A page in Prometheus' text format as samples by name, read strictly: a broken line costs that line, not the page.

The agent reads such pages every few seconds for years, so it has no library for them: only the lines whose names are asked
for are taken apart. What is accepted is compared with prometheus_client's parser by a property test.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_BYTES: Final = 8 << 20
MAX_SAMPLES: Final = 50_000
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\.)*)"\s*')
_END: Final = re.compile(r"\s*\}")
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: its labels and its value, which may be NaN or infinite."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Page:
    """Samples by their full name (with _total, _bucket, _sum, _count), and how many lines could not be read."""

    samples: Mapping[str, list[Sample]] = field(default_factory=dict)
    bad_lines: int = 0


def read_page(text: str, wanted: Collection[str] | None = None) -> Page:
    """Read a page of at most MAX_BYTES characters and MAX_SAMPLES samples; what is beyond is cut at a line.

    wanted: the names to read, None for all. Comments are passed over: a type there would rename a counter of Triton's.
    """
    if len(text) > MAX_BYTES:
        text = text[:MAX_BYTES].rpartition("\n")[0]
    found: defaultdict[str, list[Sample]] = defaultdict(list)
    bad = taken = 0
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped or stripped[0] == "#":
            continue
        match = _NAME.match(stripped)
        if wanted is not None and (match is None or match[0] not in wanted):
            continue
        sample = _sample(stripped[match.end() :]) if match is not None else None
        if match is None or sample is None:
            bad += 1
            continue
        found[match[0]].append(sample)
        taken += 1
        if taken >= MAX_SAMPLES:
            break
    return Page(dict(found), bad)


def _sample(rest: str) -> Sample | None:
    """Return what stands behind a name, None when it cannot be read."""
    labels: dict[str, str] = {}
    if rest.lstrip().startswith("{"):
        taken = _labels(rest, rest.index("{") + 1)
        if taken is None:
            return None
        labels, rest = taken
    elif not rest[:1].isspace():
        return None
    fields = rest.split()
    if not 1 <= len(fields) <= 2 or any("_" in text for text in fields):
        return None
    try:
        value, *_time = [float(text) for text in fields]
    except ValueError:
        return None
    return Sample(labels, value)


def _labels(text: str, at: int) -> tuple[dict[str, str], str] | None:
    """Return the labels from `at` on and what follows their brace, None when they have no end."""
    labels: dict[str, str] = {}
    while True:
        match = _LABEL.match(text, at)
        if match is None:
            end = _END.match(text, at)
            return (labels, text[end.end() :]) if end is not None else None
        labels[match[1]] = _ESCAPED.sub(_unescaped, match[2]) if "\\" in match[2] else match[2]
        at = match.end()
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "}":
            return None


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[0])
