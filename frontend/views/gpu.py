"""A GPU's page: one card by its UUID, with its history over every server that it was on."""

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from fleet.selectors import fault_list
from frontend.access import PageRequest, page
from frontend.board import Page, board_of, markers_of
from frontend.chart_data import summaries_of
from frontend.chart_specs import GPU_CHARTS
from frontend.gpu_page import facts, gpu_found, gpu_subjects, health, state_sentence
from frontend.ranges import time_range
from frontend.server_page import FAULTS_LISTED, fault_lines, process_lines
from panel.accounts.capabilities import Capability
from panel.core.clock import now


@page(Capability.FLEET_VIEW)
def gpu(request: PageRequest, gpu_id: int) -> HttpResponse:
    """Show one card or MIG slice."""
    at = now()
    place = gpu_found(gpu_id, now=at)
    if request.GET.get("part") == "markers":
        shown = time_range(request.GET, now=at)
        return JsonResponse({"markers": markers_of(server_id=place.row.server_id, time_range=shown, gpu_id=gpu_id)})
    context = {
        "place": place,
        "row": place.row,
        "card": place.card,
        "server": place.server.server,
        "interval": place.server.interval_seconds,
        "advice": state_sentence(place),
        "processes": process_lines([place.card]),
    }
    if request.GET.get("part") == "status":
        return render(request, "gpu/part.html", context)
    shown = time_range(request.GET, now=at)
    subjects = gpu_subjects(place)
    urls = [f"/api/v1/gpus/{subject.id}/series/" for subject in subjects]
    context |= {
        "title": f"{place.row.server_name} {place.row.label}",
        "nav": "fleet",
        "facts": facts(place.card.gpu),
        "health": health(place.card.gpu),
        "faults": fault_lines(list(fault_list(gpu=gpu_id).order_by("-last_at")[:FAULTS_LISTED])),
        "board": board_of(
            page=Page("gpu", gpu_id, f"gpu.{gpu_id}", urls, place.server.interval_seconds),
            charts=GPU_CHARTS,
            subjects=subjects,
            time_range=shown,
            markers=markers_of(server_id=place.row.server_id, time_range=shown, gpu_id=gpu_id),
            summaries=summaries_of(GPU_CHARTS, subjects, shown),
        ),
        "parent_title": _("Slice of a card") if place.row.parent_id else "",
    }
    return render(request, "gpu/page.html", context)
