"""An endpoint's latency as its page shows it: probes of each place, engines beside them, queue against compute, gaps by name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from endpoints.engine_figures import EngineLatency, Source, engine_series
from endpoints.engines.readings import LABELS
from endpoints.latency import SUBJECT, EndpointLatency, ProbeLatency, endpoint_latency
from endpoints.models import Endpoint
from fleet.agent.probes.vantage import Verdict
from frontend.events.rows import Row as EventRow
from frontend.events.rows import row_of
from frontend.formatting import with_unit
from frontend.plots import WIDTH, Line, Mark, Plot, plot_of, time_ticks, value_ticks
from frontend.probing.curves import History, history
from frontend.probing.words import CONNECTIONS, METRICS
from frontend.ranges import TimeRange
from frontend.serving.words import engine_label
from monitoring.engines.histograms import Bucketed, Estimate
from monitoring.percentiles import Percentile
from monitoring.probing.places import verdicts
from monitoring.probing.tables import PANEL
from monitoring.selectors import Series, SeriesResult
from panel.accounts.selectors.audit import event_list
from panel.core.clock import now

POINTS: Final = 60
MOST_PLOTS: Final = 4
MOST_EVENTS: Final = 50
LONGEST: Final = timedelta(days=90)
_STYLES: Final = ((0.5, "P50", "p50"), (0.95, "P95", "p95"), (0.99, "P99", "p99"))
PROBLEMS: Final[Mapping[str, Promise]] = {
    "no_page": gettext_lazy("this engine has no page of metrics that is known here"),
    "off": gettext_lazy("its metrics are off: start it with the argument that opens them (SGLang: --enable-metrics)"),
    "refused": gettext_lazy("its page of metrics refuses the endpoint's key"),
    "unanswered": gettext_lazy("its page of metrics did not answer in time"),
    "too_large": gettext_lazy("its page of metrics is larger than any engine's"),
    "unknown": gettext_lazy("its page of metrics holds no names that are known here"),
}
# Of a place that is not known to be well: tone, a word, and a sentence.
VERDICTS: Final[Mapping[str, tuple[str, Promise, Promise]]] = {
    "bad": (
        "critical",
        gettext_lazy("place bad"),
        gettext_lazy("There is no network: what fails now is the place, not the endpoint."),
    ),
    "slow": (
        "warning",
        gettext_lazy("place slow"),
        gettext_lazy(
            "Its control target is slow or fails: the place itself is slow now, and no alert is raised on latency."
        ),
    ),
    "unknown": (
        "unknown",
        gettext_lazy("no control"),
        gettext_lazy(
            "No control target was probed from there within two minutes: nobody can tell whether it is the place."
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One probe from one place, cold or warm. trouble: of the place itself, see VERDICTS; None when it is well."""

    probe_id: int
    name: str
    metric: str
    place: str
    connection: str
    percentiles: Sequence[Percentile]
    threshold_ms: float | None
    over_percent: float | None
    failures: int
    trouble: tuple[str, Promise, Promise] | None
    plot: History | None = None

    @property
    def n(self) -> int:
        """Return how many results it is of."""
        return self.percentiles[0].n

    @property
    def is_missed(self) -> bool:
        """Say whether its 99th percentile, as far as it is proven, lies over the threshold."""
        p99 = self.percentiles[-1]
        return (
            self.threshold_ms is not None
            and p99.is_enough
            and p99.value_ms is not None
            and p99.value_ms > self.threshold_ms
        )


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One time that engines measure themselves."""

    label: str
    whole: Bucketed
    estimates: Sequence[Estimate]


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What one replica's figures are from. missing, broken: readings in words; problem: a sentence, empty for none."""

    replica: int
    server: str
    engine: str
    missing: Sequence[str]
    broken: Sequence[str]
    problem: str


@dataclass(frozen=True, slots=True)
class Span:
    """The time that plots show, with what happened in it."""

    start: datetime
    end: datetime
    events: Sequence[EventRow]


def latency_context(endpoint: Endpoint, shown: TimeRange) -> dict[str, Any]:
    """Return what the tab needs. Some queries for each probe, a dozen besides."""
    start, end = max(shown.start, shown.end - LONGEST), shown.end
    found = endpoint_latency(endpoint=endpoint, start=start, end=end, points=POINTS)
    span = Span(start, end, _events(endpoint, start, end))
    at = now()
    trouble = verdicts(server_ids={place.server_id for one in found.probes for place in one.places}, at=at)
    rows = [row for one in found.probes for row in _place_rows(one, found, trouble)]
    return {
        "shown": shown,
        "places": _with_plots(rows, found, span),
        "troubles": sorted({(row.place, str(row.trouble[2])) for row in rows if row.trouble is not None}),
        "has_probes": bool(found.probes),
        "engines": [EngineRow(_label(one.name), one.whole, one.whole.estimates()) for one in found.engines],
        "engine_plots": _engine_plots(found.engines, span),
        "work_plots": _work_plots(endpoint, span),
        "sources": [_source_row(one) for one in found.sources],
        "missing": [_label(name) for name in found.missing],
        "events": span.events,
        "as_of": at,
    }


def _label(name: str) -> str:
    return str(LABELS.get(name, name))


def _events(endpoint: Endpoint, start: datetime, end: datetime) -> list[EventRow]:
    """Return what happened to an endpoint and its replicas in a time, the newest first."""
    events = event_list(subject_kind=SUBJECT, subject_id=endpoint.pk, start=start, end=end)
    return [row_of(event, sees_users=False) for event in events[:MOST_EVENTS]]


def _place_rows(one: ProbeLatency, found: EndpointLatency, states: Mapping[int, Verdict]) -> list[PlaceRow]:
    return [
        PlaceRow(
            probe_id=one.probe.pk,
            name=one.probe.name,
            metric=str(METRICS[one.probe.metric]),
            place=_("the panel")
            if place.server_id == PANEL
            else found.servers.get(place.server_id, f"#{place.server_id}"),
            connection=str(CONNECTIONS[place.connection]),
            percentiles=place.percentiles,
            threshold_ms=one.probe.threshold_ms,
            over_percent=None if place.over is None else place.over * 100,
            failures=place.failures,
            trouble=VERDICTS.get(states[place.server_id].state),
        )
        for place in one.places
    ]


def _with_plots(rows: Sequence[PlaceRow], found: EndpointLatency, span: Span) -> list[PlaceRow]:
    """Return the rows, the first ones with their curves."""
    keys = [(one.probe, (place.server_id, place.connection)) for one in found.probes for place in one.places]
    drawn: list[PlaceRow] = []
    for at, (row, (probe, place)) in enumerate(zip(rows, keys, strict=True)):
        asked: dict[str, Any] = {"place": place, "start": span.start, "end": span.end, "events": span.events}
        plot = history(probe, **asked) if at < MOST_PLOTS else None
        fields = {name: getattr(row, name) for name in PlaceRow.__dataclass_fields__ if name != "plot"}
        drawn.append(PlaceRow(**fields, plot=plot))
    return drawn


@dataclass(frozen=True, slots=True)
class Drawn:
    """A plot with its name, and the same numbers as a table, the newest first. columns: what the lines are called."""

    label: str
    plot: Plot
    columns: Sequence[str]
    rows: Sequence[tuple[datetime, Sequence[str]]]


def _engine_plots(engines: Sequence[EngineLatency], span: Span) -> list[Drawn]:
    """Return the curves of first token, gaps between tokens and queue, as far as engines tell of them."""
    wanted = ("time_to_first_token", "inter_token", "queue_time")
    return [_engine_plot(one, span) for one in engines if one.name in wanted]


def _engine_plot(one: EngineLatency, span: Span) -> Drawn:
    lines = [
        Line(label, style, [(at.timestamp(), _shown(part, q)) for at, part in one.steps]) for q, label, style in _STYLES
    ]
    return _drawn(_label(one.name), lines, "latency", span)


def _shown(part: Bucketed, q: float) -> float | None:
    """Return a step's percentile; too few requests, or one above all buckets, is a gap."""
    found = part.estimate(q)
    return found.value_ms if found.is_enough else None


def _drawn(label: str, lines: Sequence[Line], unit: str, span: Span) -> Drawn:
    plot, top = plot_of(lines, begin=span.start.timestamp(), end=span.end.timestamp())
    plot.x_ticks, plot.y_ticks = time_ticks(span.start, span.end), [with_unit(each, unit) for each in value_ticks(top)]
    plot.marks = [_mark(event, span) for event in span.events]
    return Drawn(label, plot, [line.label for line in lines], _table(lines, unit))


def _table(lines: Sequence[Line], unit: str) -> list[tuple[datetime, Sequence[str]]]:
    """Return a row for each place at which some line has a value; a gap is an empty cell."""
    cells: dict[float, dict[str, float]] = {}
    for line in lines:
        for place, value in line.points:
            if value is not None:
                cells.setdefault(place, {})[line.label] = value
    return [
        (
            datetime.fromtimestamp(place, UTC),
            [with_unit(found[line.label], unit) if line.label in found else "" for line in lines],
        )
        for place, found in sorted(cells.items(), reverse=True)[:POINTS]
    ]


def _mark(event: EventRow, span: Span) -> Mark:
    share = (event.at - span.start) / (span.end - span.start)
    return Mark(round(min(max(share, 0.0), 1.0) * WIDTH, 1), event.sentence, event.severity)


def _work_plots(endpoint: Endpoint, span: Span) -> list[Drawn]:
    """Return the curves of what waits and runs, of the fullest KV cache and of tokens, all replicas together."""
    metrics = ("running", "waiting", "kv_cache_percent", "generation_tokens_per_second")
    found = engine_series(endpoint=endpoint, metrics=metrics, start=span.start, end=span.end, points=POINTS * 4)
    together = {one.metric: one for one in found.series if one.kind == "endpoint"}
    if not together:
        return []
    queue = [
        _line(_("Running"), "p99", together["running"], found),
        _line(_("Waiting"), "p95", together["waiting"], found),
    ]
    cache = [_line(_("Fullest KV cache"), "p99", together["kv_cache_percent"], found)]
    tokens = [_line(_("Tokens per second"), "p99", together["generation_tokens_per_second"], found)]
    return [
        _drawn(_("Requests running and waiting"), queue, "count", span),
        _drawn(_("KV cache"), cache, "percent", span),
        _drawn(_("Generated tokens per second"), tokens, "per_second", span),
    ]


def _line(label: str, style: str, series: Series, grid: SeriesResult) -> Line:
    begins = grid.from_ms / 1000 + (np.arange(grid.points) + 0.5) * grid.step_seconds
    points = [
        (at, None if math.isnan(value) else value)
        for at, value in zip(begins.tolist(), series.average.tolist(), strict=True)
    ]
    return Line(label, style, points)


def _source_row(one: Source) -> SourceRow:
    return SourceRow(
        one.replica,
        one.server,
        engine_label(one.family) if one.family else "",
        [_label(name) for name in one.missing],
        [_label(name) for name in one.broken],
        str(PROBLEMS.get(one.problem, one.problem)),
    )
