"""Small curves for lists: one mean per server over time."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import numpy as np

from monitoring.selectors import series

POINTS: Final = 46


def sparklines(server_of: Mapping[int, int], *, start: datetime, end: datetime) -> dict[str, list[float | None]]:
    """Return each server's mean utilisation over its cards that reported. server_of: card id → server id."""
    if not server_of:
        return {}
    result = series(
        kind="gpu", subject_ids=list(server_of), metrics=["utilization_percent"], start=start, end=end, points=POINTS
    )
    cards: dict[int, list[int]] = defaultdict(list)
    for place, one in enumerate(result.series):
        cards[server_of[one.subject_id]].append(place)
    lines: dict[str, list[float | None]] = {}
    for server_id, places in cards.items():
        values = np.stack([result.series[place].average for place in places]).astype(np.float64)
        reports = ~np.isnan(values)
        count = reports.sum(axis=0)
        total = np.where(reports, values, 0).sum(axis=0)
        lines[str(server_id)] = [
            round(float(value / number), 1) if number else None for value, number in zip(total, count, strict=True)
        ]
    return lines
