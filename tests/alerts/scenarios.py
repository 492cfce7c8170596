"""Scenario tables in the style of rule unit tests: a series in a short notation, and what holds at given times.

`ok*60 over*5 _*10`: sixty probes below the limit, five over it, ten that never came. One step is one probe of 30 s.
"""

from typing import Final

import numpy as np

from monitoring.alerts.conditions.windows import Window

START: Final = 1_700_000_400.0


def steps(notation: str) -> list[bool | None]:
    """Return each step: over, not over, or missing."""
    words = {"ok": False, "over": True, "_": None}
    found: list[bool | None] = []
    for part in notation.split():
        word, _, times = part.partition("*")
        found += [words[word]] * int(times or 1)
    return found


def window_of(notation: str, *, interval: float = 30.0) -> tuple[Window, float]:
    """Return the window of a series and the time of its last step."""
    told = steps(notation)
    at = START + interval * np.arange(1, len(told) + 1)
    there = np.array([each is not None for each in told])
    over = np.array([bool(each) for each in told])
    return Window.of(at[there], over[there], interval), float(at[-1])
