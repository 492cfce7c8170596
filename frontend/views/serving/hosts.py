"""How a server serves: its settings, cordon and evacuation."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from endpoints.services.hosts import server_cordon, server_uncordon, serving_update
from endpoints.services.placing import serving_of
from fleet.models import Server
from frontend.access import PageRequest, page
from frontend.forms import refuse
from frontend.serving.hosts import cordon_words
from frontend.serving.machine_forms import ServingForm
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import FleetdeckError, NotFound


def _server(server_id: int) -> Server:
    found = Server.objects.select_related("serving").filter(pk=server_id, retired_at=None).first()
    if found is None:
        raise NotFound(_("There is no such server, or it was removed."))
    return found


def _back(server_id: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(f"{reverse('server', args=[server_id])}#serving")


@page(Capability.SERVERS_MANAGE)
def serving(request: PageRequest, server_id: int) -> HttpResponse:
    """Change how a server serves."""
    server = _server(server_id)
    form = ServingForm(request.POST or None, initial=ServingForm.initial_of(serving_of(server)))
    if request.method == "POST" and form.is_valid():
        try:
            serving_update(server_id=server_id, actor=Actor.from_request(request), **form.cleaned_data)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("Saved."))
            return _back(server_id)
    context = {
        "title": _("How %(name)s serves") % {"name": server.name},
        "server": server,
        "form": form,
        "nav": "fleet",
    }
    return render(request, "serving/form.html", context, status=400 if form.is_bound else 200)


@page(Capability.SERVERS_MANAGE)
def cordon(request: PageRequest, server_id: int) -> HttpResponse:
    """Show what a cordon stops and keeps; a POST does it, with `evacuate` its replicas move away."""
    server = _server(server_id)
    given = request.POST if request.method == "POST" else request.GET
    is_evacuating = given.get("evacuate") == "yes"
    if request.method == "POST":
        reason, actor = request.POST.get("reason", "")[:200], Actor.from_request(request)
        server_cordon(server_id=server_id, actor=actor, is_evacuating=is_evacuating, reason=reason)
        messages.success(request, _("It takes no new replicas."))
        return _back(server_id)
    title = _("Move every replica away from %(name)s?") if is_evacuating else _("Place nothing new on %(name)s?")
    context = {
        "title": title % {"name": server.name},
        "server": server,
        "is_evacuating": is_evacuating,
        "consequences": cordon_words(server, is_evacuating=is_evacuating),
        "nav": "fleet",
    }
    return render(request, "serving/cordon.html", context)


@require_POST
@page(Capability.SERVERS_MANAGE)
def uncordon(request: PageRequest, server_id: int) -> HttpResponse:
    """Let a server take replicas again."""
    server_uncordon(server_id=server_id, actor=Actor.from_request(request))
    messages.success(request, _("It takes replicas again."))
    return _back(server_id)
