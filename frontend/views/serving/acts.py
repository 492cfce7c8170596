"""What may be done to an endpoint: each act is shown with its consequences first, and done by a POST."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from endpoints.models import Rollout
from endpoints.services.endpoints import endpoint_delete, endpoint_scale
from endpoints.services.rollouts import (
    endpoint_restart,
    endpoint_rollback,
    rollout_cancel,
    rollout_pause,
    rollout_resume,
)
from frontend.access import PageRequest, page, role_of
from frontend.serving.acts import ACTS, Ask, count_of
from frontend.serving.listing import endpoint_found
from frontend.serving.tabs import endpoint_tabs
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import FleetdeckError, InvalidInput, NotFound


def _scale(endpoint_id: int, actor: Actor, given: Mapping[str, str]) -> Any:
    count, reason = count_of(given.get("replicas", "")), given.get("reason", "")[:500]
    return endpoint_scale(endpoint_id=endpoint_id, desired_replicas=count, actor=actor, reason=reason)


def _rollback(endpoint_id: int, actor: Actor, given: Mapping[str, str]) -> Any:
    number = given.get("number", "")
    wanted = int(number) if number.isdecimal() and len(number) < 10 else None
    return endpoint_rollback(endpoint_id=endpoint_id, number=wanted, actor=actor)


_DO: Final[Mapping[str, Callable[[int, Actor, Mapping[str, str]], Any]]] = {
    "scale": _scale,
    "rollback": _rollback,
    "restart": lambda pk, actor, _given: endpoint_restart(endpoint_id=pk, actor=actor),
    "pause": lambda pk, actor, _given: rollout_pause(endpoint_id=pk, actor=actor),
    "resume": lambda pk, actor, _given: rollout_resume(endpoint_id=pk, actor=actor),
    "cancel": lambda pk, actor, _given: rollout_cancel(endpoint_id=pk, actor=actor),
    "delete": lambda pk, actor, _given: endpoint_delete(endpoint_id=pk, actor=actor),
}


@page(Capability.ENDPOINTS_MANAGE)
def act(request: PageRequest, endpoint_id: int, name: str) -> HttpResponse:
    """Show what an act stops, keeps and costs; a confirmed POST does it."""
    if name not in ACTS:
        raise NotFound(_("That cannot be asked for."))
    endpoint = endpoint_found(endpoint_id)
    given = (request.POST if request.method == "POST" else request.GET).dict()
    try:
        ask = ACTS[name](endpoint, given)
        if request.method == "POST":
            return _done(request, endpoint_id, ask)
    except InvalidInput as error:
        messages.error(request, error.message)
        return _back(endpoint_id)
    context = {"title": ask.title, "ask": ask, **endpoint_tabs(endpoint, "", role_of(request))}
    return render(request, "endpoints/ask.html", context)


def _done(request: PageRequest, endpoint_id: int, ask: Ask) -> HttpResponse:
    if ask.type_name and request.POST.get("typed_name", "").strip() != ask.type_name:
        messages.error(request, _("The name did not match; nothing was done."))
        return _back(endpoint_id)
    try:
        result = _DO[ask.name](endpoint_id, Actor.from_request(request), request.POST.dict())
    except FleetdeckError as error:
        messages.error(request, error.message)
        return _back(endpoint_id)
    if isinstance(result, Rollout) and ask.name in {"restart", "rollback"}:
        return HttpResponseRedirect(reverse("endpoint-run", args=[endpoint_id, result.pk]))
    messages.success(request, _("It is under way."))
    return HttpResponseRedirect(reverse("endpoints")) if ask.values.get("from") == "list" else _back(endpoint_id)


def _back(endpoint_id: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("endpoint", args=[endpoint_id]))
