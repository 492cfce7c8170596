"""Endpoints: the list, and one endpoint with its tabs."""

from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from endpoints.enums import Phase
from endpoints.models import ApiKey
from endpoints.selectors import key_list, replica_list, revision_list
from endpoints.services.endpoints import endpoint_update
from fleet.models import Server
from frontend.access import PageRequest, page, require, role_of
from frontend.forms import refuse
from frontend.leasing.offers import number_of
from frontend.leasing.tabs import page_number, rows_of
from frontend.ranges import time_range
from frontend.serving import detail, listing
from frontend.serving.forms import SettingsForm
from frontend.serving.keys import key_rows, opens
from frontend.serving.revisions import compared
from frontend.serving.tabs import endpoint_tabs, section_tabs
from frontend.serving.traffic_charts import range_choices, traffic_board, traffic_markers, traffic_range
from frontend.status import tone_of
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability, has_capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError

_PHASES: Final = [(phase.value, tone_of(phase), phase.label) for phase in Phase]


@page(Capability.FLEET_VIEW)
def endpoints(request: PageRequest) -> HttpResponse:
    """Show every endpoint; filters and page are in the address."""
    wanted, at = listing.read_filter(request.GET.dict()), now()
    found = rows_of(listing.filtered(wanted), page_number(request.GET.get("page", "")))
    context = {
        "title": _("Endpoints"),
        "wanted": wanted,
        "list": found,
        "rows": listing.rows_of(found.rows, at),
        "phase_words": {value: [tone, str(label)] for value, tone, label in _PHASES},
        "as_of": at,
    }
    if request.GET.get("part") == "rows":
        return render(request, "endpoints/rows.html", context)
    context |= listing.choices() | section_tabs("endpoints", role_of(request))
    if not found.rows and not wanted.is_active:
        context |= {"has_gateway": listing.has_gateway(), "has_server": Server.objects.filter(retired_at=None).exists()}
    return render(request, "endpoints/page.html", context)


@page(Capability.FLEET_VIEW)
def endpoint(request: PageRequest, endpoint_id: int) -> HttpResponse:
    """Show one endpoint: its numbers and condition, its replicas, its traffic, how to call it."""
    found, at = listing.endpoint_found(endpoint_id), now()
    shown, part = traffic_range(time_range(request.GET, now=at)), request.GET.get("part")
    if part == "traffic":
        return render(request, "endpoints/traffic.html", detail.traffic_context(found, shown))
    if part == "markers":
        return JsonResponse({"markers": traffic_markers(found, shown)})
    context = detail.status_of(found, at)
    if part == "status":
        return render(request, "endpoints/status.html", context)
    keys, chosen = _keys(request, found.name)
    context |= detail.traffic_context(found, shown) | endpoint_tabs(found, "endpoint", role_of(request))
    context |= {
        "title": found.name,
        "board": traffic_board(found, shown),
        "ranges": range_choices(shown),
        "keys": keys,
        "chosen_key": chosen,
        "snippets": detail.snippets(found, f"{chosen.prefix}…" if chosen is not None else detail.PLACEHOLDER),
    }
    return render(request, "endpoints/one.html", context)


def _keys(request: PageRequest, name: str) -> tuple[list[ApiKey], ApiKey | None]:
    """Return the keys that open an endpoint, for those who may see them, and the one that the address names."""
    if not has_capability(role_of(request), Capability.ENDPOINTS_MANAGE):
        return [], None
    keys = [key for key in key_list().filter(revoked_at=None)[:200] if opens(key, name, now())]
    wanted = number_of(request.GET.get("key", ""))
    return keys, next((key for key in keys if key.pk == wanted), None)


@page(Capability.FLEET_VIEW)
def replicas(request: PageRequest, endpoint_id: int) -> HttpResponse:
    """Show every replica of an endpoint, those that have ended too."""
    found = listing.endpoint_found(endpoint_id)
    shown = rows_of(replica_list(endpoint=endpoint_id), page_number(request.GET.get("page", "")))
    context = {
        "title": _("Replicas of %(name)s") % {"name": found.name},
        "list": shown,
        "rows": detail.replica_rows(shown.rows),
        **endpoint_tabs(found, "endpoint-replicas", role_of(request)),
    }
    return render(request, "endpoints/replicas.html", context)


@page(Capability.FLEET_VIEW)
def revisions(request: PageRequest, endpoint_id: int) -> HttpResponse:
    """Show an endpoint's revisions, and in which places two of them differ."""
    found = listing.endpoint_found(endpoint_id)
    shown = rows_of(revision_list(endpoint=endpoint_id), page_number(request.GET.get("page", "")))
    context = {
        "title": _("Revisions of %(name)s") % {"name": found.name},
        "list": shown,
        "comparison": compared(found, request.GET.get("before", ""), request.GET.get("after", "")),
        **endpoint_tabs(found, "endpoint-revisions", role_of(request)),
    }
    return render(request, "endpoints/revisions.html", context)


@page(Capability.ENDPOINTS_MANAGE)
def keys(request: PageRequest, endpoint_id: int) -> HttpResponse:
    """Show the keys that open an endpoint."""
    found, at = listing.endpoint_found(endpoint_id), now()
    context = {
        "title": _("Keys of %(name)s") % {"name": found.name},
        "rows": key_rows([key for key in key_list()[:500] if not key.endpoints or found.name in key.endpoints], at),
        **endpoint_tabs(found, "endpoint-one-keys", role_of(request)),
    }
    return render(request, "endpoints/keys.html", context)


@page(Capability.FLEET_VIEW)
def settings(request: PageRequest, endpoint_id: int) -> HttpResponse:
    """Show, and for those who may change, what needs no new revision."""
    found = listing.endpoint_found(endpoint_id)
    form = SettingsForm(request.POST or None, initial=SettingsForm.initial_of(found))
    if request.method == "POST":
        require(request, Capability.ENDPOINTS_MANAGE)
        if form.is_valid() and _save(request, form, endpoint_id):
            messages.success(request, _("Saved."))
            return HttpResponseRedirect(reverse("endpoint-settings", args=[endpoint_id]))
    may = has_capability(role_of(request), Capability.ENDPOINTS_MANAGE)
    if not may:
        for field in form.fields.values():
            field.disabled = True
    context: dict[str, Any] = {
        "title": _("Settings of %(name)s") % {"name": found.name},
        "form": form,
        "may": may,
        **endpoint_tabs(found, "endpoint-settings", role_of(request)),
    }
    return render(request, "endpoints/settings.html", context, status=400 if form.is_bound else 200)


def _save(request: PageRequest, form: SettingsForm, endpoint_id: int) -> bool:
    try:
        endpoint_update(endpoint_id=endpoint_id, actor=Actor.from_request(request), **form.settings)
    except FleetdeckError as error:
        refuse(form, error)
        return False
    return True
