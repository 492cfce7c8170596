"""Histograms of engines over any range: minutes for a week, hours for what is older. Merged, never averaged."""

import json
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import connection

from monitoring.engines.histograms import Bucketed
from monitoring.engines.tables import KEPT_DAYS, NAMES

# A histogram is told about once a minute: shorter steps would be empty.
SHORTEST_STEP_SECONDS: Final = 60
_HOUR: Final = 3600
# Ranges whose steps are hours are read from hours, and what is not summed up yet from minutes.
_MINUTES: Final = """
    SELECT subject_id, name, extract(epoch FROM at)::bigint / %(step)s * %(step)s, bounds, counts, sum_seconds
    FROM engine_histogram WHERE subject_id = ANY(%(subjects)s) AND name = ANY(%(names)s) AND at >= %(start)s AND at < %(end)s
"""
_HOURS: Final = """
    SELECT subject_id, name, extract(epoch FROM hour_at)::bigint / %(step)s * %(step)s, bounds, counts, sum_seconds
    FROM monitoring_enginehour
    WHERE subject_id = ANY(%(subjects)s) AND name = ANY(%(names)s) AND hour_at >= %(start)s AND hour_at < %(end)s
"""

Key = tuple[int, str, datetime]  # replica, name, start of the step


def step_for(*, start: datetime, end: datetime, points: int, now: datetime) -> int:
    """Return the seconds of a step: at most `points` of them, whole minutes, whole hours where only hours are kept."""
    least = max((end - start).total_seconds() / max(points, 1), SHORTEST_STEP_SECONDS)
    is_old = start < now - timedelta(days=KEPT_DAYS - 1)
    unit = _HOUR if is_old or least > _HOUR else SHORTEST_STEP_SECONDS
    return math.ceil(least / unit) * unit


def histograms(
    *,
    replica_ids: Collection[int],
    names: Sequence[str],
    start: datetime,
    end: datetime,
    step_seconds: int,
    now: datetime,
) -> dict[Key, Bucketed]:
    """Return what each replica's histograms grew by in each step of the range. Two queries at most.

    names: of `monitoring.engines.tables.NAMES`. A step without requests is missing.
    """
    if not replica_ids or not names:
        return {}
    asked: dict[str, Any] = {
        "subjects": list(replica_ids),
        "names": [NAMES.index(name) for name in names],
        "step": step_seconds,
    }
    found: defaultdict[Key, Bucketed] = defaultdict(Bucketed)
    border = start
    if step_seconds % _HOUR == 0:
        summed = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
        border = min(max(start, summed), end)
        _add(found, _HOURS, {**asked, "start": start, "end": border})
    _add(found, _MINUTES, {**asked, "start": border, "end": end})
    return dict(found)


def _add(found: "defaultdict[Key, Bucketed]", sql: str, asked: Mapping[str, Any]) -> None:
    if asked["start"] >= asked["end"]:
        return
    with connection.cursor() as cursor:
        cursor.execute(sql, asked)
        for subject, name, second, bounds, counts, seconds in cursor:
            key = (subject, NAMES[name], datetime.fromtimestamp(int(second), UTC))
            found[key] = found[key].merged(Bucketed.of(_listed(bounds), _listed(counts), seconds))


def _listed(value: Any) -> list[Any]:
    """Return an array's elements, which come as JSON text from a raw query of a JSON column."""
    return list(json.loads(value)) if isinstance(value, str) else list(value)
