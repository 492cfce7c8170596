"""Callers' keys and engines' secrets: listed without their values, made, ended."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from endpoints.models import ApiKey, Endpoint, Gateway, Secret
from endpoints.selectors import endpoint_list, key_list
from endpoints.services.keys import key_create, key_revoke, secret_delete, secret_set
from frontend.access import PageRequest, page, role_of
from frontend.forms import refuse
from frontend.serving.detail import snippets
from frontend.serving.keys import key_rows
from frontend.serving.machine_forms import CallerKeyForm, SecretForm
from frontend.serving.tabs import section_tabs
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError

LISTED = 500


@page(Capability.ENDPOINTS_MANAGE)
def keys(request: PageRequest) -> HttpResponse:
    """Show callers' keys."""
    found = key_list()
    context = {
        "title": _("Keys"),
        "rows": key_rows(found[:LISTED], now()),
        "left_out": max(found.count() - LISTED, 0),
        "gateways": Gateway.objects.count(),
        **section_tabs("endpoint-keys", role_of(request)),
    }
    return render(request, "keys/page.html", context)


@never_cache
@page(Capability.ENDPOINTS_MANAGE)
def key_new(request: PageRequest) -> HttpResponse:
    """Make a key; its text is shown in the answer and never again."""
    form = CallerKeyForm(request.POST or None, initial={"endpoints": request.GET.getlist("endpoint")})
    context = {"title": _("New key"), "form": form, **section_tabs("endpoint-keys", role_of(request))}
    if request.method == "POST" and form.is_valid():
        try:
            key, issued = key_create(actor=Actor.from_request(request), **form.values)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            context |= {"title": _("Key “%(name)s” is made") % {"name": key.name}, "key": key, "text": issued.token}
            context |= _first_call(key, issued.token)
            return render(request, "keys/made.html", context)
    return render(request, "keys/new.html", context, status=400 if form.is_bound else 200)


def _first_call(key: ApiKey, token: str) -> dict[str, object]:
    """Return commands with the key in them, for one that opens a single endpoint."""
    if len(key.endpoints) != 1:
        return {}
    endpoint = endpoint_list().filter(name=key.endpoints[0]).first()
    return {} if endpoint is None else {"endpoint": endpoint, "snippets": snippets(endpoint, token)}


@require_POST
@page(Capability.ENDPOINTS_MANAGE)
def revoke(request: PageRequest, key_id: int) -> HttpResponse:
    """End a key."""
    key = key_revoke(key_id=key_id, actor=Actor.from_request(request))
    messages.success(request, _("%(name)s opens nothing any more.") % {"name": key.name})
    return HttpResponseRedirect(reverse("endpoint-keys"))


@page(Capability.ENDPOINTS_MANAGE)
def secrets(request: PageRequest) -> HttpResponse:
    """Show the names of secrets; a POST keeps or replaces one."""
    form = SecretForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            secret_set(actor=Actor.from_request(request), **form.cleaned_data)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("%(name)s is kept.") % {"name": form.cleaned_data["name"]})
            return HttpResponseRedirect(reverse("secrets"))
    context = {
        "title": pgettext("of engines", "Secrets"),
        "form": form,
        "rows": _secret_rows(),
        **section_tabs("secrets", role_of(request)),
    }
    return render(request, "keys/secrets.html", context, status=400 if form.is_bound else 200)


def _secret_rows() -> list[dict[str, object]]:
    """Return secrets with the endpoints whose revisions refer to them. Two queries."""
    users: dict[str, set[str]] = {}
    endpoints = Endpoint.objects.filter(deleted_at=None).select_related("active_revision", "target_revision")
    for endpoint in endpoints:
        for revision in (endpoint.active_revision, endpoint.target_revision):
            for name in (revision.spec.get("secret_environment") or {}).values() if revision is not None else ():
                users.setdefault(name, set()).add(endpoint.name)
    found = Secret.objects.order_by("name")
    return [
        {"secret": each, "used_by": sorted(users.get(each.name, ())), "dialog_id": f"forget-{each.pk}"}
        for each in found
    ]


@require_POST
@page(Capability.ENDPOINTS_MANAGE)
def secret_remove(request: PageRequest, name: str) -> HttpResponse:
    """Forget a secret."""
    secret_delete(name=name, actor=Actor.from_request(request))
    messages.success(request, _("%(name)s is forgotten.") % {"name": name})
    return HttpResponseRedirect(reverse("secrets"))
