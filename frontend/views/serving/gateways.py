"""Gateways: how they are, a server made one, changed, given up."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from endpoints.services.gateways import gateway_create, gateway_delete, gateway_update
from frontend.access import PageRequest, page, role_of
from frontend.forms import refuse
from frontend.serving.gateways import gateway_found, gateway_rows, giving_up
from frontend.serving.machine_forms import GatewayForm, NewGatewayForm
from frontend.serving.tabs import section_tabs
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError

_FIELDS = ("port", "public_url", "certificate_file", "key_file")


@page(Capability.FLEET_VIEW)
def gateways(request: PageRequest) -> HttpResponse:
    """Show where callers arrive."""
    context = {"title": _("Gateways"), "rows": gateway_rows(now()), **section_tabs("gateways", role_of(request))}
    template = "gateways/rows.html" if request.GET.get("part") == "rows" else "gateways/page.html"
    return render(request, template, context)


def _shown(request: PageRequest, form: GatewayForm, **context: Any) -> HttpResponse:
    context |= {"form": form, **section_tabs("gateways", role_of(request))}
    return render(request, "gateways/form.html", context, status=400 if form.is_bound else 200)


@page(Capability.ENDPOINTS_MANAGE)
def gateway_new(request: PageRequest) -> HttpResponse:
    """Have a server's agent run a gateway."""
    form = NewGatewayForm(request.POST or None, initial={"server": request.GET.get("server", "")})
    if request.method == "POST" and form.is_valid():
        values = {name: form.cleaned_data[name] for name in _FIELDS}
        try:
            server_id = int(form.cleaned_data["server"])
            gateway_create(server_id=server_id, actor=Actor.from_request(request), **values)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("Its agent starts the gateway now."))
            return _back()
    return _shown(request, form, title=_("Make a server a gateway"))


@page(Capability.ENDPOINTS_MANAGE)
def gateway_edit(request: PageRequest, gateway_id: int) -> HttpResponse:
    """Change how a gateway listens."""
    found = gateway_found(gateway_id)
    form = GatewayForm(request.POST or None, initial={name: getattr(found, name) for name in _FIELDS})
    if request.method == "POST" and form.is_valid():
        try:
            gateway_update(gateway_id=gateway_id, actor=Actor.from_request(request), **form.cleaned_data)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("Saved."))
            return _back()
    return _shown(request, form, title=_("Gateway on %(name)s") % {"name": found.server.name}, gateway=found)


@page(Capability.ENDPOINTS_MANAGE)
def gateway_remove(request: PageRequest, gateway_id: int) -> HttpResponse:
    """Show who loses their address; a POST with the server's name typed gives the gateway up."""
    found = gateway_found(gateway_id)
    if request.method == "POST":
        if request.POST.get("typed_name", "").strip() != found.server.name:
            messages.error(request, _("The name did not match; nothing was done."))
            return _back()
        gateway_delete(gateway_id=gateway_id, actor=Actor.from_request(request))
        messages.success(request, _("%(name)s is no gateway any more.") % {"name": found.server.name})
        return _back()
    context = {
        "title": _("Give up the gateway on %(name)s?") % {"name": found.server.name},
        "gateway": found,
        "consequences": giving_up(found),
        **section_tabs("gateways", role_of(request)),
    }
    return render(request, "gateways/remove.html", context)


def _back() -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("gateways"))
