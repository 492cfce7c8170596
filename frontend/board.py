"""The charts of a page as its template and its scripts need them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse

from frontend.chart_config import Subject, chart_config
from frontend.chart_specs import Chart
from frontend.formatting import said_of
from frontend.ranges import TimeRange
from frontend.words import event_sentence
from panel.accounts.selectors.audit import event_list
from panel.core.models import Event

NAMED_LINES: Final = 8
MARKERS: Final = 100
# What marks a chart: faults, and changes of what a server, a driver or a card is.
MARKED_KINDS: Final = (
    "gpu.xid",
    "gpu.sxid",
    "gpu.state_changed",
    "server.state_changed",
    "server.driver_changed",
    "server.joined",
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart's frame. choices is empty when nothing of it can be shown."""

    id: str
    title: str
    choices: Sequence[Mapping[str, Any]]
    summary: str
    table_href: str
    csv_href: str


@dataclass(frozen=True, slots=True)
class Legend:
    """One subject's button. colour: its place in the palette, from 1."""

    key: str
    label: str
    colour: int


@dataclass(frozen=True, slots=True)
class Known:
    """What charts were made of. A frame that tells of other cards, or of another memory, asks for them anew."""

    gpu_ids: Sequence[int]
    memory_limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class Page:
    """Whose charts these are. kind: server, gpu or endpoint, as in addresses; topic: of the live frames; urls: of the series.

    interval_seconds: how often its readings come. known: what the charts were made of, where more may come to it.
    is_polled: no frame brings the readings.
    """

    kind: str
    id: int
    topic: str
    urls: Sequence[str]
    interval_seconds: float
    known: Known | None = None
    is_polled: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that charts/board.html shows. folded: how many cards are drawn as a band instead of a line."""

    range: TimeRange
    figures: Sequence[Figure]
    legend: Sequence[Legend]
    folded: int
    config: Mapping[str, Any]

    @property
    def config_json(self) -> str:
        """Return the configuration as the scripts read it."""
        return json.dumps(self.config, separators=(",", ":"))


def board_of(
    *,
    page: Page,
    charts: Sequence[Chart],
    subjects: Sequence[Subject],
    time_range: TimeRange,
    markers: Sequence[Mapping[str, Any]],
    summaries: Mapping[str, str],
) -> Board:
    """Return the board. summaries: chart id → sentence."""
    configs = [chart_config(chart, subjects) for chart in charts]
    figures = [
        _figure(page, chart, config, time_range, summaries.get(chart.id, ""))
        for chart, config in zip(charts, configs, strict=True)
    ]
    cards = [subject for subject in subjects if subject.kind == "gpu"]
    return Board(
        range=time_range,
        figures=figures,
        legend=[Legend(card.key, card.label, at + 1) for at, card in enumerate(cards[:NAMED_LINES])]
        if len(cards) > 1
        else [],
        folded=max(0, len(cards) - NAMED_LINES),
        config={
            "urls": page.urls,
            "topic": page.topic,
            "from": time_range.start.timestamp(),
            "to": time_range.end.timestamp(),
            "isLive": time_range.is_live,
            "intervalSeconds": page.interval_seconds,
            "isPolled": page.is_polled,
            "known": page.known
            and {"gpus": [str(one) for one in page.known.gpu_ids], "memoryLimitBytes": page.known.memory_limit_bytes},
            "summariesUrl": reverse(f"{page.kind}-summaries", args=[page.id]),
            "charts": [config for config in configs if config["choices"]],
            "markers": markers,
        },
    )


def _figure(page: Page, chart: Chart, config: Mapping[str, Any], time_range: TimeRange, summary: str) -> Figure:
    table = reverse(f"{page.kind}-chart", args=[page.id, chart.id])
    csv = reverse(f"{page.kind}-chart-csv", args=[page.id, chart.id])
    return Figure(
        id=chart.id,
        title=str(chart.title),
        choices=config["choices"],
        summary=summary,
        table_href=f"{table}?{time_range.query}",
        csv_href=f"{csv}?{time_range.query}",
    )


def marker_of(event: Event) -> dict[str, Any]:
    """Return an event as a mark on the charts, with the address at which it is told."""
    subject = f"{event.subject_kind}:{event.subject_id}"
    return {
        "id": str(event.pk),
        "at": event.at.timestamp(),
        "severity": str(event.severity),
        "label": said_of(event.subject_name, event_sentence(event.kind, event.data)),
        "href": f"{reverse('events')}?subject={subject}",
    }


def markers_of(*, server_id: int, time_range: TimeRange, gpu_id: int | None = None) -> list[dict[str, Any]]:
    """Return the marks of a server (its cards included), or of one card; the newest hundred. One query."""
    events = event_list(server_id=server_id, start=time_range.start).filter(kind__in=MARKED_KINDS)
    if not time_range.is_live:
        events = events.filter(at__lte=time_range.end)
    if gpu_id is not None:
        events = events.exclude(subject_kind="gpu") | events.filter(subject_kind="gpu", subject_id=gpu_id)
    return [marker_of(event) for event in events[:MARKERS]]
