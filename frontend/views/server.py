"""A server's page, and what people do there: rename, maintenance, remove."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from fleet.enums import ServerState
from fleet.selectors import fault_list
from fleet.services.servers import server_end, server_maintenance_set, server_update
from frontend.access import PageRequest, page
from frontend.board import Known, Page, board_of, markers_of
from frontend.chart_data import summaries_of
from frontend.chart_specs import HOST_ONLY_CHARTS, SERVER_CHARTS
from frontend.fleet_rows import ServerRow
from frontend.join_line import expected
from frontend.leasing.lease_page import server_lease
from frontend.leasing.leases import LeaseRow
from frontend.ranges import TimeRange, time_range
from frontend.server_page import (
    FAULTS_LISTED,
    banners,
    cards_of,
    chart_subjects,
    earlier_cards,
    fault_lines,
    process_lines,
    process_visibility,
    server_found,
)
from frontend.serving.hosts import server_serving
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import InvalidInput


def _series_url(row: ServerRow) -> str:
    return f"/api/v1/servers/{row.server.pk}/series/"


def _status(row: ServerRow) -> dict[str, Any]:
    """Return what changes with the server's state: headline, banners, cards, processes, faults, facts. Two queries."""
    cards = cards_of(row)
    return {
        "faults": fault_lines(list(fault_list(server=row.server.pk).order_by("-last_at")[:FAULTS_LISTED])),
        "facts": row.server.facts if row.has_reported else {},
        "row": row,
        "server": row.server,
        "is_retired": row.server.state == ServerState.RETIRED,
        "cards": cards,
        "banners": banners(row),
        "processes": process_lines(cards),
        "visibility": process_visibility(cards),
        "process_count": sum(len(card.gpu.processes) for card in cards),
    }


def _board(row: ServerRow, shown: TimeRange) -> dict[str, Any]:
    charts = SERVER_CHARTS if row.gpus else HOST_ONLY_CHARTS
    subjects = chart_subjects(row)
    pk, known = row.server.pk, Known(row.gpu_ids, row.memory_limit_bytes)
    return {
        "board": board_of(
            page=Page("server", pk, f"server.{pk}", [_series_url(row)], row.interval_seconds, known),
            charts=charts,
            subjects=subjects,
            time_range=shown,
            markers=markers_of(server_id=pk, time_range=shown),
            summaries=summaries_of(charts, subjects, shown),
        )
    }


def _join(row: ServerRow, paid: Mapping[str, object]) -> dict[str, Any]:
    """Return what lets a server join that never has; paid: of `server_lease`."""
    lease_row = paid["lease_row"]
    return expected(row.server, lease_row.lease if isinstance(lease_row, LeaseRow) else None)


def _consequences(row: ServerRow) -> list[str]:
    busy = row.busy
    found = [
        _("Its agent's reports are refused from now on; it must join again to come back."),
        _("The panel keeps its history; it leaves the lists and totals."),
        _("The machine itself goes on running, and costs what it costs: give it back at its provider."),
    ]
    if busy:
        text = ngettext("%(count)s GPU is busy now.", "%(count)s GPUs are busy now.", busy) % {"count": busy}
        found.insert(0, text)
    return found


@page(Capability.FLEET_VIEW)
def server(request: PageRequest, server_id: int) -> HttpResponse:
    """Show one server: its state in sentences, its cards, its charts, its processes and faults."""
    at = now()
    row = server_found(server_id, now=at)
    shown = time_range(request.GET, now=at)
    if request.GET.get("part") == "markers":
        return JsonResponse({"markers": markers_of(server_id=server_id, time_range=shown)})
    if request.GET.get("part") == "charts":
        return render(request, "charts/board.html", _board(row, shown))
    if request.GET.get("part") == "lease":
        shown_lease = {"server": row.server, "is_retired": row.server.state == ServerState.RETIRED}
        return render(request, "server/lease.html", shown_lease | server_lease(server_id, now=at))
    context = _status(row)
    if request.GET.get("part") == "status":
        return render(request, "server/part.html", context)
    paid = server_lease(server_id, now=at)
    context |= (
        _board(row, shown)
        | paid
        | _join(row, paid)
        | server_serving(row.server)
        | {
            "title": row.server.name,
            "earlier": earlier_cards(row),
            "nav": "fleet",
            "consequences": _consequences(row),
            "in_maintenance": row.server.state == ServerState.MAINTENANCE,
        }
    )
    return render(request, "server/page.html", context)


def _back(server_id: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("server", args=[server_id]))


@require_POST
@page(Capability.SERVERS_MANAGE)
def rename(request: PageRequest, server_id: int) -> HttpResponse:
    """Change what people call the server, and who rents it out."""
    name, provider, region = (request.POST.get(field) for field in ("name", "provider", "region"))
    actor = Actor.from_request(request)
    try:
        server_update(server_id=server_id, actor=actor, name=name, provider=provider, region=region)
    except InvalidInput as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("Saved."))
    return _back(server_id)


@require_POST
@page(Capability.SERVERS_MANAGE)
def maintenance(request: PageRequest, server_id: int) -> HttpResponse:
    """Put the server into maintenance, or take it out."""
    is_on = request.POST.get("is_on") == "true"
    reason = request.POST.get("reason", "")
    server_maintenance_set(server_id=server_id, is_on=is_on, actor=Actor.from_request(request), reason=reason)
    messages.success(request, _("The server is in maintenance.") if is_on else _("Maintenance is over."))
    return _back(server_id)


@require_POST
@page(Capability.SERVERS_MANAGE)
def remove(request: PageRequest, server_id: int) -> HttpResponse:
    """Retire the server once its name was typed."""
    row = server_found(server_id, now=now())
    if request.POST.get("typed_name", "").strip() != row.server.name:
        messages.error(request, _("The name did not match; nothing was removed."))
        return _back(server_id)
    server_end(server_id=server_id, reason="retired", actor=Actor.from_request(request))
    messages.success(request, _("%(name)s is removed. Its history stays.") % {"name": row.server.name})
    return HttpResponseRedirect(reverse("fleet"))
