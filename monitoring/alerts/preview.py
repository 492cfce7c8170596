"""What a rule would have told: replayed over what was recorded, through the same conditions and the same incidents."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from django.utils.translation import gettext as _

from monitoring.alerts.conditions.counting import count_reading, is_fit
from monitoring.alerts.conditions.reading import NO_DATA, Reading
from monitoring.alerts.conditions.thresholds import EMPTY, LONGEST_LOOK, threshold_reading
from monitoring.alerts.conditions.windows import Window
from monitoring.alerts.definitions import FAILED, OWN, Definition
from monitoring.alerts.enums import RuleKind
from monitoring.alerts.history import Samples, read_history
from monitoring.alerts.incident import Incident, Kind, Seen, incident_open, incident_step
from monitoring.alerts.machine import RESTING, Phase, rule_step
from monitoring.alerts.probe_rules import Line, limit_of
from monitoring.alerts.subjects import Key
from monitoring.probing.models import Probe
from monitoring.selectors import series
from monitoring.store.tables import KINDS
from panel.core.errors import InvalidInput

DAYS: Final = 7
MINUTE: Final = 60.0
Look = tuple[float, Reading]


@dataclass(slots=True)
class Preview:
    """opened: when it would have fired, and for how many seconds; told: messages by kind, as the noise rules leave them."""

    start: datetime
    end: datetime
    opened: list[tuple[datetime, float]] = field(default_factory=list)
    told: dict[str, int] = field(default_factory=dict)
    looks: int = 0

    @property
    def firing_seconds(self) -> float:
        """Return for how long it would have fired, all in all."""
        return sum(seconds for _at, seconds in self.opened)

    @property
    def messages(self) -> int:
        """Return how many messages there would have been."""
        return sum(self.told.values())


def preview(definition: Definition, key: Key, *, at: datetime, days: int = DAYS) -> Preview:
    """Replay a rule on one subject. Raises InvalidInput for what can not be replayed."""
    start = at - timedelta(days=days)
    if definition.kind == RuleKind.COUNT:
        looks = _count_looks(definition, key, start, at)
    elif definition.kind == RuleKind.THRESHOLD:
        looks = _threshold_looks(definition, key, start, at)
    else:
        raise InvalidInput(_("This rule looks at states that are not recorded over time; it can not be replayed."))
    return _replayed(definition, looks, Preview(start, at))


def _replayed(definition: Definition, looks: Iterator[Look], found: Preview) -> Preview:
    state, incident, began = RESTING, None, 0.0
    now = found.start.timestamp()
    for now, reading in looks:
        found.looks += 1
        before = state.phase
        state = rule_step(state, reading, now=now, holding=definition.holding)
        if state.phase == Phase.FIRING != before:
            began = now
        elif before == Phase.FIRING != state.phase:
            found.opened.append((_moment(began), now - began))
        if state.phase != Phase.FIRING and incident is None:
            continue
        incident = _stepped(definition, incident, state.phase == Phase.FIRING, now, found)
    if state.phase == Phase.FIRING:
        found.opened.append((_moment(began), now - began))
    return found


def _stepped(
    definition: Definition,
    incident: Incident | None,
    is_firing: bool,  # noqa: FBT001
    now: float,
    found: Preview,
) -> Incident | None:
    incident = incident or incident_open(definition.severity, now=now)
    seen = Seen(definition.severity if is_firing else None)
    incident, kinds = incident_step(incident, seen, now=now, policy=definition.policy)
    for kind in kinds:
        if kind != Kind.REMINDER:
            found.told[str(kind)] = found.told.get(str(kind), 0) + 1
    return None if incident.is_over else incident


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _count_looks(definition: Definition, key: Key, start: datetime, end: datetime) -> Iterator[Look]:
    rule = definition.count
    probes = (
        Probe.objects.filter(subject_kind=key[0], subject_id=key[1])
        if key[0] != "probe"
        else Probe.objects.filter(pk=key[1])
    )
    by_id = {probe.pk: probe for probe in probes}
    if rule is None or not by_id:
        raise InvalidInput(_("Nothing probes it."))
    wanted = {probe.metric for probe in by_id.values()} if definition.metric in {OWN, FAILED} else {definition.metric}
    since = start.timestamp() - rule.longest_seconds
    history = read_history(start=since, end=end.timestamp(), metrics=wanted, probe_ids=list(by_id))
    windows = []
    for (probe_id, server_id, connection, metric), samples in history.items():
        probe = by_id[probe_id]
        if not is_fit(probe.interval_seconds):
            continue
        kept = ~samples.suspect
        valid = Samples(samples.at[kept], samples.values[kept], samples.suspect[kept])
        line = Line(probe, server_id, connection, metric, valid, 0.0)
        limit = np.inf if definition.metric == FAILED else limit_of(definition, line)
        windows.append(line.window(limit, with_failures=True))
    step = min((probe.interval_seconds for probe in by_id.values()), default=30.0)
    now = start.timestamp()
    while now <= end.timestamp():
        yield now, _together([_cut(window, now, rule.longest_seconds) for window in windows], rule, now)
        now += max(step, 30.0)


def _cut(window: Window, now: float, seconds: float) -> Window:
    """Return the window as it was at a time."""
    first, last = window.at.searchsorted((now - seconds, now), side="right").tolist()
    low, high = window.hits.searchsorted((now - seconds, now), side="right").tolist()
    return Window(window.at[first:last], window.hits[low:high], window.interval_seconds)


def _together(windows: list[Window], rule: object, now: float) -> Reading:
    from monitoring.alerts.conditions.counting import CountRule

    assert isinstance(rule, CountRule)  # noqa: S101 (narrowed by the caller)
    readings = [count_reading(rule, window, now=now) for window in windows]
    told = [each for each in readings if each.has_data]
    if not told:
        return NO_DATA
    return Reading(is_breach=any(each.is_breach for each in told), is_clear=all(each.is_clear for each in readings))


def _threshold_looks(definition: Definition, key: Key, start: datetime, end: datetime) -> Iterator[Look]:
    kind, _dot, metric = definition.series.partition(".")
    known = next((each for each in KINDS if each.name == kind), None)
    if known is None or metric not in known.columns or definition.threshold is None:
        raise InvalidInput(_("This series is made of others and not recorded; it can not be replayed."))
    points = int((end - start).total_seconds() / MINUTE)
    result = series(
        kind=kind, subject_ids=[key[1]], metrics=[metric], start=start, end=end, points=points  # type: ignore[arg-type]
    )  # fmt: skip
    values = result.series[0].average if result.series else np.empty(0)
    step = float(result.step_seconds)
    memory = EMPTY
    # What a look stands for is bounded; rows of a coarser level stand for as long as they are.
    repeat = max(int(step // LONGEST_LOOK), 1) if step > LONGEST_LOOK else 1
    for index, value in enumerate(values.tolist()):
        for part in range(repeat):
            now = result.from_ms / 1000 + step * index + step * part / repeat
            held = None if np.isnan(value) else float(value)
            reading, memory = threshold_reading(definition.threshold, held, at=now, now=now, memory=memory)
            yield now, reading
