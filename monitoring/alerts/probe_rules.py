"""Rules on probes: each series of a place by itself, never pooled; a subject breaches when one does, and clears when all do."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from monitoring.alerts.builtin import LIMIT_MS
from monitoring.alerts.conditions.counting import CountRule, at_interval, count_reading, is_fit, no_data_after
from monitoring.alerts.conditions.quorum import Sight, down_reading
from monitoring.alerts.conditions.reading import NO_DATA, QUIET, Reading
from monitoring.alerts.conditions.windows import Window
from monitoring.alerts.definitions import FAILED, OWN, Definition
from monitoring.alerts.history import Samples, SeriesKey, joined
from monitoring.alerts.subjects import Key
from monitoring.probing.models import Probe
from monitoring.probing.targets import vantage_names
from panel.core.enums import Severity

Interval = tuple[float, float]
PLACE_BAD_SHARE: Final = 0.8
# A place is looked at sooner than its targets: its silence must be known before theirs is told.
_PLACE_SILENT: Final = 90.0
_PLACE_INTERVALS: Final = 2.5
_TAIL: Final = 12
CRITICAL_OF_20: Final = 4


@dataclass(slots=True)
class Line:
    """One series of a probe at a place, what counts of it, and windows over limits as they were asked for."""

    probe: Probe
    server_id: int
    connection: str
    metric: str
    valid: Samples
    newest_well: float
    windows: dict[tuple[float, bool], Window] = field(default_factory=dict)

    def window(self, limit: float, *, with_failures: bool) -> Window:
        """Return the window of what is over a limit (inf: of failures); without failures while they are told otherwise."""
        key = (limit, with_failures)
        if key not in self.windows:
            at, values = self.valid.at, self.valid.values
            if not with_failures:
                kept = ~np.isinf(values)
                at, values = at[kept], values[kept]
            over = np.isinf(values) if np.isinf(limit) else values > limit
            self.windows[key] = Window.of(at, over, self.probe.interval_seconds)
        return self.windows[key]


def key_of(probe: Probe) -> Key:
    """Return what a probe is about: a thing of ours, else itself."""
    if probe.subject_kind and probe.subject_id is not None:
        return probe.subject_kind, probe.subject_id
    return "probe", probe.pk


class ProbeRound:
    """All series of a round by subject.

    excluded(key): spans of time that count for no rule (maintenance).
    """

    def __init__(
        self,
        history: Mapping[SeriesKey, Samples],
        probes: Sequence[Probe],
        *,
        now: float,
        excluded: Callable[[Key], Sequence[Interval]],
    ) -> None:
        self.now = now
        self.probes: defaultdict[Key, list[Probe]] = defaultdict(list)
        self.lines: defaultdict[Key, list[Line]] = defaultdict(list)
        by_id = {probe.pk: probe for probe in probes}
        for probe in probes:
            self.probes[key_of(probe)].append(probe)
        for (probe_id, server_id, connection, metric), samples in history.items():
            known = by_id.get(probe_id)
            if known is None or not vantage_names(server_id) & set(known.vantages):
                continue
            key = key_of(known)
            well = samples.at[~samples.suspect]
            newest = float(well[-1]) if len(well) else 0.0
            self.lines[key].append(Line(known, server_id, connection, metric, _valid(samples, excluded(key)), newest))

    def leave_out(self, places: Collection[int]) -> None:
        """Let what these places measured count for nothing: they are not well."""
        for line in (line for lines in self.lines.values() for line in lines):
            if line.server_id in places:
                line.valid = line.valid.between(0, 0)
                line.windows.clear()

    def keys_known(self) -> list[Key]:
        """Return the subjects that are probed."""
        return sorted(self.probes)

    def own_lines(self, key: Key) -> list[Line]:
        """Return the series of the probes' own metrics."""
        return [line for line in self.lines[key] if line.metric == line.probe.metric]


def _valid(samples: Samples, excluded: Sequence[Interval]) -> Samples:
    kept = ~samples.suspect
    for start, end in excluded:
        kept &= ~((samples.at >= start) & (samples.at < end))
    if kept.all():
        return samples
    return Samples(samples.at[kept], samples.values[kept], samples.suspect[kept])


def limit_of(definition: Definition, line: Line) -> float:
    """Return the limit in ms: the rule's for this subject, else the probe's own, else what is usual for the metric."""
    if definition.limit_ms is not None:
        return definition.limit_ms
    own = line.probe.threshold_ms if line.metric == line.probe.metric else None
    return (own or LIMIT_MS[line.metric]) * definition.limit_factor


def _concerned(definition: Definition, round_: ProbeRound, key: Key) -> list[tuple[Line, float]]:
    if definition.metric == FAILED:
        return [(line, np.inf) for line in round_.own_lines(key)]
    if definition.metric == OWN:
        return [(line, limit_of(definition, line)) for line in round_.own_lines(key)]
    lines = [line for line in round_.lines[key] if line.metric == definition.metric != line.probe.metric]
    return [(line, limit_of(definition, line)) for line in lines]


def count_found(
    definition: Definition,
    round_: ProbeRound,
    key: Key,
    *,
    with_failures: bool,
    is_standing: bool,
    cold: Interval | None = None,
) -> tuple[Reading, dict[str, Any]] | None:
    """Judge a subject by a count rule; None when nothing is over and nothing stands: then there is nothing to remember.

    cold: while the subject had just started; what was measured then counts for no rule on latency.
    """
    rule = definition.count
    if rule is None:
        return None
    readings: list[Reading] = []
    worst: tuple[int, dict[str, Any]] | None = None
    for line, limit in _concerned(definition, round_, key):
        if not is_fit(line.probe.interval_seconds):
            continue
        window = line.window(limit, with_failures=with_failures)
        if cold is not None:
            window = _without(window, cold)
        if not len(window.hits) and not is_standing:
            continue
        reading = count_reading(rule, window, now=round_.now)
        readings.append(reading)
        if reading.is_breach or is_standing:
            figures = _figures(rule, line, window, limit, round_.now)
            if worst is None or figures["over"] > worst[0]:
                worst = figures["over"], figures
    if not readings and not is_standing:
        return None
    return _together(readings, definition, worst[1] if worst else {}), worst[1] if worst else {}


def _together(readings: Sequence[Reading], definition: Definition, figures: Mapping[str, Any]) -> Reading:
    told = [each for each in readings if each.has_data]
    if not told:
        return NO_DATA
    if any(each.is_breach for each in told):
        is_critical = definition.metric == FAILED and figures.get("over_of_last_20", 0) >= CRITICAL_OF_20
        return Reading(is_breach=True, severity=_raised(definition) if is_critical else None)
    return Reading(is_clear=all(each.is_clear for each in readings))


def _raised(definition: Definition) -> Severity:
    return Severity.CRITICAL if definition.severity != Severity.INFO else definition.severity


def _without(window: Window, cold: Interval) -> Window:
    start, end = cold
    at, hits = window.at, window.hits
    return Window(at[(at < start) | (at >= end)], hits[(hits < start) | (hits >= end)], window.interval_seconds)


def _figures(rule: CountRule, line: Line, window: Window, limit: float, now: float) -> dict[str, Any]:
    """Return what a message says of it: how many of how many, over which limit, since when, the worst, from where."""
    fitted = at_interval(rule, window.interval_seconds)
    seconds = max((each.seconds for each in fitted.fires if window.over(now, each.seconds) >= each.least), default=0.0)
    seconds = seconds or min(each.seconds for each in fitted.fires)
    hits = window.hits[window.hits > now - seconds]
    inside = line.valid.values[(line.valid.at > now - seconds) & (line.valid.at <= now)]
    finite = inside[~np.isinf(inside)]
    return {
        "over": len(hits),
        "n": window.samples(now, seconds),
        "window_seconds": int(seconds),
        "limit_ms": None if np.isinf(limit) else limit,
        "metric": line.metric,
        "since": float(hits[0]) if len(hits) else None,
        "worst_ms": round(float(finite.max()), 1) if len(finite) else None,
        "failures": int(np.isinf(inside).sum()),
        "over_of_last_20": int((window.hits >= window.at[-20:][0]).sum()) if len(window.at) else 0,
        "place": line.server_id,
        "connection": line.connection,
        "probe": line.probe.pk,
        "interval_seconds": line.probe.interval_seconds,
    }


def down_found(round_: ProbeRound, key: Key, *, is_standing: bool) -> tuple[Reading, dict[str, Any]] | None:
    """Judge whether a subject is down, by place; None when the newest results are good and nothing stands."""
    lines = round_.own_lines(key)
    if not is_standing and not any(len(line.valid.values) and np.isinf(line.valid.values[-1]) for line in lines):
        return None
    by_place: defaultdict[int, list[Samples]] = defaultdict(list)
    for line in lines:
        if len(line.valid.at):
            by_place[line.server_id].append(_tail(line.valid))
    sights = {place: sight_of(joined(parts)) for place, parts in by_place.items()}
    interval = max((line.probe.interval_seconds for line in lines), default=30.0)
    silent_after = no_data_after(interval)
    reading = down_reading(list(sights.values()), now=round_.now, silent_after=silent_after)
    seen = [place for place, each in sights.items() if each.at >= round_.now - silent_after]
    good = [line.valid.at[~np.isinf(line.valid.values)] for line in lines]
    last_good = max((float(each[-1]) for each in good if len(each)), default=None)
    evidence = {
        "places": sorted(place for place in seen if sights[place].failures),
        "of_places": len(seen),
        "is_single": len(seen) == 1,
        "failures": max((each.failures for each in sights.values()), default=0),
        "last_good": last_good,
        "probe": lines[0].probe.pk if lines else None,
    }
    return reading, evidence


def _tail(samples: Samples) -> Samples:
    return Samples(samples.at[-_TAIL:], samples.values[-_TAIL:], samples.suspect[-_TAIL:])


def sight_of(samples: Samples) -> Sight:
    """Return how many results of the same kind a place saw last in a row."""
    failed = np.isinf(samples.values)
    if not len(failed):
        return Sight(0, 0, 0.0)
    other = np.flatnonzero(failed != failed[-1])
    run = len(failed) - 1 - int(other[-1]) if len(other) else len(failed)
    at = float(samples.at[-1])
    return Sight(run, 0, at) if failed[-1] else Sight(0, run, at)


def silence_found(round_: ProbeRound, key: Key) -> tuple[Reading, dict[str, Any]]:
    """Judge whether a subject gives no valid sample at all any more."""
    probes = round_.probes[key]
    interval = min(probe.interval_seconds for probe in probes)
    after = no_data_after(interval)
    made = min(probe.created_at.timestamp() for probe in probes)
    newest = max((float(line.valid.at[-1]) for line in round_.lines[key] if len(line.valid.at)), default=made)
    if round_.now - newest <= after:
        return QUIET, {}
    places = sorted({line.server_id for line in round_.lines[key]})
    return Reading(is_breach=True), {"since": newest, "after_seconds": int(after), "places": places}


def places_found(round_: ProbeRound) -> Iterator[tuple[int, Reading, dict[str, Any]]]:
    """Judge the places: bad when four of five series there are silent or suspect."""
    tally: defaultdict[int, list[bool]] = defaultdict(list)
    for lines in round_.lines.values():
        for line in lines:
            if line.metric == line.probe.metric:
                tally[line.server_id].append(_is_bad(line, round_.now))
    for place, bad in sorted(tally.items()):
        reading = Reading(is_breach=True) if sum(bad) >= PLACE_BAD_SHARE * len(bad) else QUIET
        yield place, reading, {"bad": sum(bad), "of": len(bad)}


def _is_bad(line: Line, now: float) -> bool:
    silent_after = max(_PLACE_SILENT, _PLACE_INTERVALS * line.probe.interval_seconds)
    return line.newest_well < now - silent_after
