"""The Fleet page: servers and GPUs as two lists, their rows in chunks, the choice of columns, CSV, sparklines."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from fleet.enums import ServerState
from fleet.models import Gpu
from frontend.access import PageRequest, page
from frontend.columns import columns_chosen, columns_save
from frontend.csv_export import csv_response
from frontend.fleet_csv import CSV_HEADERS, csv_row
from frontend.fleet_list import CHUNK_ROWS, COLUMNS, ListFilter, Row, filtered, first_chunks, read_filter, shown_columns
from frontend.fleet_reading import fleet_rows
from frontend.fleet_rows import FleetRows
from frontend.leasing.accounts import kind_label
from frontend.server_notes import server_notes
from frontend.sparklines import sparklines
from monitoring.activity import Activity
from panel.accounts.capabilities import Capability
from panel.core.clock import now

SPARK_SERVERS: Final = 100
SPARK_LENGTH: Final = timedelta(minutes=15)


def _chunks(rows: Sequence[Row], first: int, count: int) -> list[dict[str, Any]]:
    """Return chunks of rows with their numbers."""
    return [
        {"number": number, "rows": rows[number * CHUNK_ROWS : (number + 1) * CHUNK_ROWS]}
        for number in range(first, first + count)
        if number == first or number * CHUNK_ROWS < len(rows)
    ]


def _pages(total: int, first: int) -> dict[str, int | None]:
    """Return which rows a page without scripts shows, and the chunks that its neighbours start with."""
    count = first_chunks(total)
    shown_to = min(total, (first + count) * CHUNK_ROWS)
    return {
        "first_row": first * CHUNK_ROWS + 1,
        "last_row": shown_to,
        "newer_chunk": max(0, first - count) if first else None,
        "older_chunk": first + count if shown_to < total else None,
    }


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 7 else 0


def _columns(request: PageRequest, wanted: ListFilter) -> dict[str, Any]:
    chosen = shown_columns(wanted.tab, columns_chosen(user=request.user, tab=wanted.tab))
    keys = {column.key for column in chosen}
    return {
        "columns": chosen,
        "shown": keys,
        "all_columns": [(column, column.key in keys) for column in COLUMNS[wanted.tab]],
    }


def _choices(fleet: FleetRows, wanted: ListFilter) -> dict[str, Any]:
    states = (
        Activity.choices
        if wanted.tab == "gpus"
        else [(state.value, state.label) for state in ServerState if state != ServerState.RETIRED]
    )
    return {
        "states": [("attention", _("Needs attention")), *states],
        "providers": sorted({(key, kind_label(key)) for row in fleet.servers if (key := row.server.provider)}),
        "models": sorted({gpu.name for gpu in fleet.gpus if gpu.name}),
    }


def _tabs(request: PageRequest, fleet: FleetRows, wanted: ListFilter) -> list[dict[str, Any]]:
    kept = {key: value for key, value in request.GET.items() if key in {"q", "provider", "model"}}
    return [
        {
            "href": "?" + urlencode({"tab": tab, **kept}),
            "label": label,
            "current": wanted.tab == tab,
            "count": count,
        }
        for tab, label, count in (("servers", _("Servers"), len(fleet.servers)), ("gpus", _("GPUs"), len(fleet.gpus)))
    ]


@page(Capability.FLEET_VIEW)
def fleet(request: PageRequest) -> HttpResponse:
    """Show one of the lists; filters, order and tab are in the address."""
    wanted = read_filter(request.GET.dict())
    found = fleet_rows(now=now())
    rows = filtered(found, wanted)
    first = min(_number(request.GET.get("chunk", "")), max(0, (len(rows) - 1) // CHUNK_ROWS))
    context = {
        "title": _("Fleet"),
        "nav": "fleet",
        "wanted": wanted,
        "fleet": found,
        "tabs": _tabs(request, found, wanted),
        "notes": server_notes(found),
        "chunks": _chunks(rows, first, first_chunks(len(rows))),
        "total": len(rows),
        "all": len(found.gpus) if wanted.tab == "gpus" else len(found.servers),
        "chunk_rows": CHUNK_ROWS,
        **_pages(len(rows), first),
        **_columns(request, wanted),
        **_choices(found, wanted),
    }
    return render(request, "fleet/page.html", context)


@page(Capability.FLEET_VIEW)
def rows(request: PageRequest) -> HttpResponse:
    """Answer one chunk of rows for a list that scrolls."""
    wanted = read_filter(request.GET.dict())
    found = filtered(fleet_rows(now=now()), wanted)
    chunk = _chunks(found, _number(request.GET.get("chunk", "")), 1)[0]
    context = {"chunk": chunk, "wanted": wanted, **_columns(request, wanted)}
    response = render(request, "fleet/rows.html", context)
    response["Fleetdeck-Total"] = str(len(found))
    return response


@require_POST
@page(Capability.PROFILE_EDIT)
def columns(request: PageRequest) -> HttpResponse:
    """Keep the columns that this person wants to see."""
    wanted = read_filter(request.POST.dict())
    keys = [] if "reset" in request.POST else request.POST.getlist("column")
    columns_save(user=request.user, tab=wanted.tab, keys=keys)
    return HttpResponseRedirect(f"{reverse('fleet')}?{request.POST.get('query', '')}")


@page(Capability.FLEET_VIEW)
def export(request: PageRequest) -> HttpResponse:
    """Answer every row that the filters let through, all columns, in base units."""
    wanted = read_filter(request.GET.dict())
    found = filtered(fleet_rows(now=now()), wanted)
    return csv_response(
        name=f"fleetdeck-{wanted.tab}-{now():%Y%m%d-%H%M}.csv",
        header=CSV_HEADERS[wanted.tab],
        rows=(csv_row(row) for row in found),
    )


@page(Capability.FLEET_VIEW)
def sparks(request: PageRequest) -> JsonResponse:
    """Answer the mean utilisation of servers over a quarter of an hour: {"<server id>": [percent or null, …]}."""
    ids = [int(text) for text in request.GET.get("servers", "").split(",") if text.isdecimal() and len(text) < 18][
        :SPARK_SERVERS
    ]
    cards = Gpu.objects.filter(server__in=ids, parent=None, removed_at=None).values_list("id", "server_id")
    end = now()
    return JsonResponse(sparklines(dict(cards), start=end - SPARK_LENGTH, end=end))
