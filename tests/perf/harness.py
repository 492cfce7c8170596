"""What every benchmark returns, and how it is shown: rows with a figure, its peer in the same run, and the goal beside it.

Absolute figures drift with the machine; what counts is the ratio in one run.
"""

import dataclasses
import json
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure.

    value is in `unit`; peer names what it was measured beside, ratio is value over the peer's (or as the note says), goal
    is the ratio or figure to reach as text, such as `>= 0.7`. A missing peer leaves ratio None and says so in the note.
    """

    name: str
    value: float | None
    unit: str
    peer: str = ""
    ratio: float | None = None
    goal: str = ""
    note: str = ""


def number(value: float | None) -> str:
    """Return a figure with three significant digits, or a dash."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(rows: list[Row]) -> str:
    """Return the rows as an aligned text table."""
    head = ("what", "value", "unit", "beside", "ratio", "goal", "note")
    cells = [head, *((r.name, number(r.value), r.unit, r.peer, number(r.ratio), r.goal, r.note) for r in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def write(rows: list[Row], path: Path) -> None:
    """Write the rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=2, ensure_ascii=False) + "\n")
