"""One probe: its places side by side, one result phase by phase, the request as it is sent, what happened in its time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from fleet.agent.probes.slots import slot_after
from fleet.agent.probes.streams import PATHS, body_of
from fleet.agent.probes.target import STREAMS, Target
from fleet.agent.probes.web import request_of
from frontend.events.rows import Row as EventRow
from frontend.events.rows import row_of
from frontend.probing import words
from frontend.probing.listing import DAY
from frontend.probing.waterfall import Bar, bars_of, scale_of
from monitoring.percentiles import Percentile
from monitoring.probing.lists import uptime_percent
from monitoring.probing.models import Probe
from monitoring.probing.reading import Latency, latency, latest, results
from monitoring.probing.tables import PANEL
from panel.accounts.selectors.audit import audit_list, event_list

RESULTS: Final = 50
MOST_EVENTS: Final = 30
CUT: Final = "••••"
_SECRET_NAMES: Final = ("authorization", "api-key", "x-api-key", "cookie", "token", "secret", "password", "probe-mark")
_HTTP: Final = frozenset({"http", "kserve_ready", "kserve_infer"})


@dataclass(frozen=True, slots=True)
class Phase:
    """One line of a waterfall."""

    bar: Bar
    label: str


@dataclass(frozen=True, slots=True)
class Waterfall:
    """One result, phase by phase, over scale_ms."""

    result: Mapping[str, Any]
    place: str
    phases: Sequence[Phase]
    scale_ms: float

    @property
    def tone(self) -> str:
        """Return the mark of its outcome."""
        return words.outcome_tone(str(self.result["outcome"]))

    @property
    def word(self) -> str:
        """Return its outcome in words."""
        return words.outcome_word(str(self.result["outcome"]))

    @property
    def why(self) -> str:
        """Return what it says when it is not ok."""
        return words.why(self.result)

    @property
    def is_ok(self) -> bool:
        """Say whether it was ok."""
        return bool(self.result["outcome"] == "ok")

    @property
    def connection_word(self) -> str:
        """Return cold or warm."""
        return str(words.CONNECTIONS.get(str(self.result["connection"]), ""))

    @property
    def phase_reached(self) -> str:
        """Return how far one that failed came, in words."""
        reached = str(self.result.get("phase_reached") or "start")
        return str(words.PHASES.get(reached, "")) or _("before anything was sent")


def waterfall_of(result: Mapping[str, Any], place: str, *, scale_ms: float | None = None) -> Waterfall:
    """Return a result as bars; scale_ms: of several beside each other, else its own."""
    scale = scale_ms or scale_of(result)
    phases = [Phase(bar, str(words.PHASES[bar.name])) for bar in bars_of(result, scale_ms=scale)]
    return Waterfall(result, place, phases, scale)


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One place and kind of connection: what came last, and the percentiles of a day. Never pooled with another."""

    server_id: int
    connection: str
    name: str
    newest: Waterfall | None
    day: Latency | None
    next_at: datetime | None

    @property
    def connection_word(self) -> str:
        """Return cold or warm."""
        return str(words.CONNECTIONS[self.connection])

    @property
    def uptime(self) -> float | None:
        """Return how many of a hundred were ok."""
        return uptime_percent(self.day) if self.day is not None else None

    @property
    def percentiles(self) -> Sequence[Percentile]:
        """Return P50, P95 and P99 of a day; nothing without results."""
        return self.day.percentiles if self.day is not None else ()

    @property
    def over_percent(self) -> float | None:
        """Return how many of a hundred were over the threshold."""
        return None if self.day is None or self.day.over is None else self.day.over * 100


def places_of(probe: Probe, target: Target | None, *, at: datetime) -> list[PlaceRow]:
    """Return every place that has found anything within a day. Three queries."""
    newest = {
        (each["server"] or PANEL, each["connection"]): each
        for each in latest(probe_ids=[probe.pk], at=at).get(probe.pk, [])
    }
    found = latency(probe_id=probe.pk, metric=probe.metric, start=at - DAY, end=at, threshold_ms=probe.threshold_ms)
    day = {(each.server_id, each.connection): each for each in found}
    keys = sorted({*newest, *day})
    names = words.place_names({key[0] for key in keys})
    # What a place without network waited for is no phase of anybody.
    seen = [scale_of(result) for result in newest.values() if result["outcome"] not in words.SILENT]
    scale = max(seen, default=0.0)
    return [
        PlaceRow(
            server_id=key[0],
            connection=key[1],
            name=names[key[0]],
            newest=waterfall_of(newest[key], names[key[0]], scale_ms=scale or None) if key in newest else None,
            day=day.get(key),
            next_at=_next(probe, target, key[0], at),
        )
        for key in keys
    ]


def _next(probe: Probe, target: Target | None, server_id: int, at: datetime) -> datetime | None:
    if target is None or not probe.is_enabled:
        return None
    vantage = "panel" if server_id == PANEL else f"server-{server_id}"
    due = slot_after(at.timestamp(), target=probe.pk, vantage=vantage, interval_seconds=target.interval_seconds)
    return datetime.fromtimestamp(due, UTC)


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One of the last results. key: names it in an address."""

    result: Mapping[str, Any]
    place: str
    key: str

    @property
    def tone(self) -> str:
        """Return the mark."""
        return words.outcome_tone(str(self.result["outcome"]))

    @property
    def word(self) -> str:
        """Return the outcome in words."""
        return words.outcome_word(str(self.result["outcome"]))

    @property
    def why(self) -> str:
        """Return what it says when it is not ok."""
        return words.why(self.result)

    @property
    def connection_word(self) -> str:
        """Return cold or warm."""
        return str(words.CONNECTIONS.get(str(self.result["connection"]), ""))


def last_results(probe: Probe, *, start: datetime, end: datetime) -> list[ResultRow]:
    """Return the newest results of a range. Two queries."""
    found = results(probe_id=probe.pk, start=start, end=end, limit=RESULTS)
    names = words.place_names({each["server"] or PANEL for each in found})
    return [ResultRow(each, names[each["server"] or PANEL], result_key(each)) for each in found]


def result_key(result: Mapping[str, Any]) -> str:
    """Return what names a result in an address."""
    ms = round(result["started_at"].timestamp() * 1000)
    return f"{result['server'] or PANEL}.{result['connection']}.{ms}"


def result_named(probe: Probe, key: str) -> Waterfall | None:
    """Return the result that an address names, None when there is none."""
    server, _dot, rest = key.partition(".")
    connection, _dot, ms = rest.partition(".")
    if not (server.isdecimal() and ms.isdecimal() and len(ms) < 15):
        return None
    try:
        at = datetime.fromtimestamp(int(ms) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    span = timedelta(milliseconds=1)
    for each in results(probe_id=probe.pk, start=at - span, end=at + span, limit=RESULTS):
        if (each["server"] or PANEL, each["connection"]) == (int(server), connection):
            return waterfall_of(each, words.place_names({int(server)})[int(server)])
    return None


def request_sample(target: Target) -> str:
    """Return the request as it is sent, its secrets cut; an empty text for kinds that send none that is text."""
    if target.kind in STREAMS:
        body = json.dumps(body_of(target, "…", is_usage_asked=True), ensure_ascii=False, indent=1)
        request = request_of(target, "panel", method="POST", body=body.encode())
        path = PATHS[target.kind] if target.path == "/" else target.path
    elif target.kind in _HTTP:
        given = target.body
        body = (
            ""
            if given is None
            else given
            if isinstance(given, str)
            else json.dumps(given, ensure_ascii=False, indent=1)
        )
        request, path = request_of(target, "panel", body=body.encode()), target.path
    else:
        return ""
    lines = [f"{request.method} {path} HTTP/1.1", *(f"{name}: {_cut(name, value)}" for name, value in request.headers)]
    return "\n".join([*lines, "", body[:2_000]]).rstrip()


def _cut(name: str, value: str) -> str:
    """Return a header's value, or that there is a secret."""
    if not any(word in name.lower() for word in _SECRET_NAMES):
        return value
    scheme, _space, rest = value.partition(" ")
    return f"{scheme} {CUT}" if rest else CUT


def events_near(probe: Probe, *, start: datetime, end: datetime) -> list[EventRow]:
    """Return what happened to a probe and to what it is about, the newest first. Two queries at most."""
    found = [row_of(entry, sees_users=False) for entry in _changes(probe, start, end)]
    if probe.subject_kind and probe.subject_id:
        events = event_list(subject_kind=probe.subject_kind, subject_id=probe.subject_id, start=start, end=end)
        found += [row_of(entry, sees_users=False) for entry in events[:MOST_EVENTS]]
    return sorted(found, key=lambda row: row.at, reverse=True)[:MOST_EVENTS]


def _changes(probe: Probe, start: datetime, end: datetime) -> list[Any]:
    rows = audit_list(action="probe.update", target_kind="probe", target_id=probe.pk, start=start, end=end)
    return list(rows[:MOST_EVENTS])
