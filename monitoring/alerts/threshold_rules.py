"""Threshold rules over the newest values of all subjects at once: only those that are beyond a limit cost anything each."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from monitoring.alerts.conditions.thresholds import EMPTY, Memory, Operator, Threshold, threshold_reading
from monitoring.alerts.definitions import Definition
from monitoring.alerts.outcomes import Outcome
from monitoring.alerts.rules import RuleInForce
from monitoring.alerts.series import Newest
from monitoring.alerts.subjects import Key


def threshold_outcomes(
    in_force: RuleInForce, newest: Newest, *, now: float, memories: Mapping[int, Memory], existing: Collection[int]
) -> Iterator[tuple[Key, Outcome]]:
    """Yield what is not quiet, or stands (`memories`: by subject, empty where nothing is remembered).

    existing: ids of all subjects of the kind, asked only by rules on absence. What is quiet and was quiet is left out.
    """
    base, kind = in_force.base, in_force.base.subject_kind
    threshold = base.threshold or Threshold(Operator.ABOVE)
    special = {subject_id for found, subject_id in in_force.special if found == kind}
    wanted = set(memories) | special | _beyond(newest, threshold, base, now)
    if threshold.operator == Operator.ABSENT:
        wanted |= set(existing) - set(newest.ids.tolist())
    place = {subject_id: index for index, subject_id in enumerate(newest.ids.tolist())} if wanted else {}
    for subject_id in sorted(wanted):
        definition = in_force.of((kind, subject_id))
        if definition is None or definition.threshold is None:
            continue
        yield (
            (kind, subject_id),
            _outcome(definition, newest, place.get(subject_id), now, memories.get(subject_id, EMPTY)),
        )


def _beyond(newest: Newest, threshold: Threshold, definition: Definition, now: float) -> set[int]:
    """Return the ids of those that are not quiet at first sight."""
    is_there = (newest.at >= now - threshold.stale_seconds) & ~np.isnan(newest.values)
    if threshold.operator == Operator.ABSENT:
        found = ~is_there
    elif threshold.operator == Operator.CHANGED:
        found = is_there
    elif threshold.operator == Operator.BELOW:
        found = is_there & (newest.values < threshold.limit)
    else:
        found = is_there & (newest.values > threshold.limit)
    if definition.holding.is_absence_breach:
        found = found | ~is_there
    return set(newest.ids[found].tolist())


def _outcome(definition: Definition, newest: Newest, index: int | None, now: float, memory: Memory) -> Outcome:
    threshold = definition.threshold or Threshold(Operator.ABOVE)
    value = float(newest.values[index]) if index is not None and not np.isnan(newest.values[index]) else None
    at = float(newest.at[index]) if index is not None else None
    reading, kept = threshold_reading(threshold, value, at=at, now=now, memory=memory)
    evidence = {
        "series": definition.series,
        "operator": str(threshold.operator),
        "limit": threshold.limit,
        "value": value,
    }
    if threshold.operator == Operator.SHARE:
        over = sum(last - first for first, last in kept.over)
        evidence |= {"share": round(over / threshold.window_seconds, 3), "window_seconds": threshold.window_seconds}
    return Outcome(definition, reading, evidence, kept)
