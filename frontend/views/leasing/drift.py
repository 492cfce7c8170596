"""Differences between panel and provider: the list, and what people do about one."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from fleet.enums import DriftKind
from fleet.models import ProviderAccount
from fleet.selectors.leasing import drift_list
from fleet.services.drift_actions import drift_accept, drift_adopt, drift_end, drift_ignore
from frontend.access import PageRequest, page
from frontend.leasing.drifts import IGNORE_FOR, DriftRow, filtered, read_filter
from frontend.leasing.tabs import open_drifts, page_number, rental_tabs, rows_of
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError


@page(Capability.FLEET_VIEW)
def drift(request: PageRequest) -> HttpResponse:
    """Show where panel and provider differ; parts of it for the page that is kept as it is now."""
    part = request.GET.get("part", "")
    if part == "count":
        return render(request, "drift/count.html", {"waiting": open_drifts().count()})
    wanted = read_filter(request.GET.dict())
    found = rows_of(filtered(wanted), page_number(request.GET.get("page", "")))
    context = {
        "title": _("Differences"),
        "wanted": wanted,
        "list": found,
        "rows": [DriftRow(each) for each in found.rows],
        "kinds": DriftKind.choices,
        "accounts": list(ProviderAccount.objects.filter(removed_at=None).order_by("name").values_list("pk", "name")),
        "ignore_for": [(key, label) for key, (label, _length) in IGNORE_FOR.items()],
    }
    if part == "rows":
        return render(request, "drift/rows.html", context)
    context |= rental_tabs("drift")
    return render(request, "drift/page.html", context)


def _settle(request: PageRequest, work: Callable[[Actor], Any], done: str) -> HttpResponse:
    try:
        work(Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, done)
    return HttpResponseRedirect(reverse("drift"))


@require_POST
@page(Capability.LEASES_MANAGE)
def adopt(request: PageRequest, drift_id: int) -> HttpResponse:
    """Take on a machine that the panel did not know."""
    done = _("The machine is adopted; it stands among the leases.")
    return _settle(request, lambda actor: drift_adopt(drift_id=drift_id, actor=actor), done)


@require_POST
@page(Capability.LEASES_MANAGE)
def end(request: PageRequest, drift_id: int) -> HttpResponse:
    """End an unknown machine once its name was typed."""
    found = drift_list(now=now()).filter(pk=drift_id).first()
    if found is None or request.POST.get("typed_name", "").strip() != DriftRow(found).name:
        messages.error(request, _("The name did not match; nothing was ended."))
        return HttpResponseRedirect(reverse("drift"))
    done = _("Its end is asked for; it stands among the leases until the provider confirms it.")
    return _settle(request, lambda actor: drift_end(drift_id=drift_id, actor=actor), done)


@require_POST
@page(Capability.LEASES_MANAGE)
def accept(request: PageRequest, drift_id: int) -> HttpResponse:
    """Take the provider's word."""
    return _settle(request, lambda actor: drift_accept(drift_id=drift_id, actor=actor), _("Accepted."))


@require_POST
@page(Capability.LEASES_MANAGE)
def ignore(request: PageRequest, drift_id: int) -> HttpResponse:
    """Leave a difference out of sight for a time."""
    words, length = IGNORE_FOR.get(request.POST.get("for", ""), IGNORE_FOR["7"])
    reason = request.POST.get("reason", "")
    done = _("Out of sight for %(time)s.") % {"time": words}
    return _settle(
        request,
        lambda actor: drift_ignore(drift_id=drift_id, until=now() + length, actor=actor, reason=reason),
        done,
    )
