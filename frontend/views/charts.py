"""The table twin of each chart, its CSV, and the sentences beside the charts: without scripts, the same data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.core.paginator import Paginator
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from frontend.access import PageRequest, page
from frontend.chart_config import KIND_OF_UNIT, Subject
from frontend.chart_data import DrawnChoice, choice_shown, drawn, points_for, summaries_of, table_rows
from frontend.chart_specs import GPU_CHARTS, SERVER_CHARTS, TRAFFIC_CHARTS, Chart
from frontend.csv_export import csv_response
from frontend.formatting import KINDS
from frontend.gpu_page import gpu_found, gpu_subjects
from frontend.ranges import TimeRange, time_range
from frontend.server_page import chart_subjects, server_found
from frontend.serving.listing import endpoint_found
from frontend.serving.traffic_charts import SPAN_SECONDS, traffic_range, traffic_subject
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import NotFound

PAGE_ROWS: Final = 25


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose charts these are."""

    kind: str
    id: int
    name: str
    charts: Sequence[Chart]
    subjects: Sequence[Subject]
    interval_seconds: float
    nav: str = "fleet"


def _server(server_id: int) -> Owner:
    row = server_found(server_id, now=now())
    return Owner("server", server_id, row.server.name, SERVER_CHARTS, chart_subjects(row), row.interval_seconds)


def _gpu(gpu_id: int) -> Owner:
    place = gpu_found(gpu_id, now=now())
    name = f"{place.row.server_name} {place.row.label}"
    return Owner("gpu", gpu_id, name, GPU_CHARTS, gpu_subjects(place), place.server.interval_seconds)


def _endpoint(endpoint_id: int) -> Owner:
    found = endpoint_found(endpoint_id)
    subjects = [traffic_subject(found)]
    return Owner("endpoint", endpoint_id, found.name, TRAFFIC_CHARTS, subjects, SPAN_SECONDS, nav="endpoints")


OWNERS: Final[dict[str, Callable[[int], Owner]]] = {"server": _server, "gpu": _gpu, "endpoint": _endpoint}


def _range(request: PageRequest, owner: Owner) -> TimeRange:
    shown = time_range(request.GET, now=now())
    return traffic_range(shown) if owner.kind == "endpoint" else shown


def _shown(request: PageRequest, owner: Owner, chart_id: str) -> tuple[Chart, DrawnChoice, TimeRange]:
    chart = next((chart for chart in owner.charts if chart.id == chart_id), None)
    choice = choice_shown(chart, owner.subjects, request.GET.get("show", "")) if chart else None
    if chart is None or choice is None:
        raise NotFound(_("There is no such chart here."))
    shown = _range(request, owner)
    points = points_for((shown.end - shown.start).total_seconds(), owner.interval_seconds)
    return chart, drawn([choice], owner.subjects, shown, points)[choice.key], shown


@page(Capability.FLEET_VIEW)
def table(request: PageRequest, kind: str, subject_id: int, chart_id: str) -> HttpResponse:
    """Show the data of one chart as rows, newest first."""
    owner = OWNERS[kind](subject_id)
    chart, data, shown = _shown(request, owner, chart_id)
    rows = Paginator(table_rows(data), PAGE_ROWS).get_page(request.GET.get("page"))
    context = {
        "title": f"{chart.title} · {owner.name}",
        "nav": owner.nav,
        "owner": owner,
        "back": f"{reverse(kind, args=[subject_id])}?{shown.query}",
        "chart": chart,
        "data": data,
        "number_kind": KIND_OF_UNIT[data.choice.unit],
        "unit": KINDS[KIND_OF_UNIT[data.choice.unit]][1],
        "rows": rows,
        "range": shown,
        "csv_href": f"{reverse(f'{kind}-chart-csv', args=[subject_id, chart_id])}?{request.GET.urlencode()}",
    }
    return render(request, "charts/table.html", context)


@page(Capability.FLEET_VIEW)
def csv(request: PageRequest, kind: str, subject_id: int, chart_id: str) -> HttpResponse:
    """Answer the same rows for a spreadsheet: values as they are measured, without rounding to the page's units."""
    owner = OWNERS[kind](subject_id)
    _chart, data, _range = _shown(request, owner, chart_id)
    header = ["time_utc", *(f"{line.label} {what}" for line in data.lines for what in ("mean", "peak"))]
    rows = ([row.at.isoformat(), *(value for cell in row.cells for value in cell)] for row in table_rows(data))
    return csv_response(name=f"fleetdeck-{kind}-{subject_id}-{chart_id}.csv", header=header, rows=rows)


@page(Capability.FLEET_VIEW)
def summaries(request: PageRequest, kind: str, subject_id: int) -> JsonResponse:
    """Answer the sentence of each chart for a range: {"utilization": "Now 82%. …"}."""
    owner = OWNERS[kind](subject_id)
    return JsonResponse(summaries_of(owner.charts, owner.subjects, _range(request, owner)))
