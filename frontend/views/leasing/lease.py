"""One lease: what it is, what it costs, what may be done to it; and contracts that are added by hand."""

import uuid
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from fleet.enums import LeaseOrigin, OperationKind
from fleet.leasing.terms import TIME_TERMS
from fleet.models import Lease
from fleet.providers.base import Billing
from fleet.selectors.costs import lease_costs
from fleet.selectors.leasing import operation_list
from fleet.services.contracts import lease_attach, lease_close, lease_terms_update, lease_type_in
from fleet.services.power import lease_act
from frontend.access import PageRequest, page
from frontend.forms import refuse
from frontend.join_line import expected
from frontend.leasing import lease_page as words
from frontend.leasing.forms import (
    CloseForm,
    ContractForm,
    TermsChangeForm,
    parts_of,
    price_formset,
    servers_without_lease,
)
from frontend.leasing.leases import LeaseRow, rows_of
from frontend.leasing.offers import number_of
from frontend.leasing.tabs import rental_tabs
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError, InvalidInput

LISTED: Final = 20
ACTS: Final = {"start", "stop", "reboot", "snapshot", "terminate"}
_TERMS: Final = ("landlord", "region", "billing", "renews_at", "is_renewing", "reminder_days", "notes", *TIME_TERMS)


def _back(lease_id: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("lease", args=[lease_id]))


def _status(row: LeaseRow, at: datetime) -> dict[str, Any]:
    """Return what moves with the lease's state; every figure is as of `at`, so that none contradicts another."""
    lease = row.lease
    return {
        "row": row,
        "lease": lease,
        "whole_cost": lease_costs(lease_ids=[lease.pk], start=lease.requested_at, end=lease.ended_at or at)[lease.pk],
        "possible": {str(kind): True for kind in words.acts_possible(lease)},
        "renewal": words.renewal_words(lease, at),
        "is_typed": lease.origin == LeaseOrigin.TYPED,
    }


def _money(lease: Lease, at: datetime) -> dict[str, Any]:
    return {
        "at": at,
        "prices": list(lease.prices.order_by("-effective_from", "component")[:LISTED]),
        "intervals": list(lease.intervals.order_by("-started_at")[:LISTED]),
        "break_even": words.break_even_words(lease, at),
        "stop_effect": words.stop_effect(lease),
        "operations": list(operation_list(lease=lease.pk).order_by("-pk")[:LISTED]),
        "drifts": list(lease.drifts.filter(resolved_at=None).select_related("account")),
    }


@page(Capability.FLEET_VIEW)
def lease(request: PageRequest, lease_id: int) -> HttpResponse:
    """Show one lease."""
    at = now()
    row = rows_of([words.lease_found(lease_id)], at)[0]
    context = _status(row, at)
    if request.GET.get("part") == "status":
        return render(request, "leases/status.html", context)
    acts = list(OperationKind) if words.can_be_asked(row.lease) else []
    context |= {
        "title": row.lease.title,
        "acts": [words.act_of(row.lease, kind, row.rate) for kind in acts if kind != OperationKind.ORDER],
        "key": uuid.uuid4().hex,
        "servers": list(servers_without_lease()[:500]),
        "close_form": CloseForm(initial={"ended_at": at}),
        **expected(None if row.lease.ended_at else row.lease.server, row.lease),
        **_money(row.lease, at),
        **rental_tabs("leases"),
    }
    return render(request, "leases/one.html", context)


@require_POST
@page(Capability.LEASES_MANAGE)
def act(request: PageRequest, lease_id: int, name: str) -> HttpResponse:
    """Ask for a start, stop, restart, snapshot or end; the end needs the lease's name typed."""
    if name not in ACTS:
        raise InvalidInput(_("That cannot be asked for."))
    kind, found = OperationKind(name), words.lease_found(lease_id)
    if kind == OperationKind.TERMINATE and request.POST.get("typed_name", "").strip() != found.title:
        messages.error(request, _("The name did not match; nothing was ended."))
        return _back(lease_id)
    try:
        asked = lease_act(
            lease_id=lease_id,
            kind=kind,
            actor=Actor.from_request(request),
            key=f"{request.POST.get('key', '')[:64]}-{name}" if request.POST.get("key") else "",
            reason=request.POST.get("reason", ""),
        )
    except FleetdeckError as error:
        messages.error(request, error.message)
        return _back(lease_id)
    return HttpResponseRedirect(reverse("operation", args=[asked.operation.pk]))


def _terms(cleaned: dict[str, Any]) -> dict[str, Any]:
    return {name: cleaned[name] for name in _TERMS if name in cleaned}


@page(Capability.LEASES_MANAGE)
def contract_new(request: PageRequest) -> HttpResponse:
    """Write down a contract for a machine that no API tells of."""
    initial = {"server": number_of(request.GET.get("server", ""))}
    form, prices = ContractForm(request.POST or None, initial=initial), price_formset(request.POST or None)
    if request.method == "POST" and form.is_valid() and prices.is_valid():
        made = _write_down(request, form, prices)
        if made is not None:
            messages.success(request, _("%(name)s is added.") % {"name": made.name})
            return _back(made.pk)
    context = {"title": _("Add a contract"), "form": form, "prices": prices, **rental_tabs("leases")}
    return render(request, "leases/contract.html", context, status=400 if form.is_bound else 200)


def _write_down(request: PageRequest, form: ContractForm, prices: Any) -> Lease | None:
    values = form.cleaned_data
    spec = {name: values[name] for name in ("gpu_model", "gpu_count") if values.get(name)}
    server = values.get("server")
    terms = _terms(values)
    try:
        return lease_type_in(
            name=values["name"],
            billing=Billing(terms.pop("billing")),
            prices=parts_of(prices),
            started_at=values["started_at"],
            actor=Actor.from_request(request),
            account=values.get("account"),
            server_id=server.pk if server is not None else None,
            spec=spec,
            **terms,
        )
    except FleetdeckError as error:
        refuse(form, error)
        return None


@page(Capability.LEASES_MANAGE)
def terms(request: PageRequest, lease_id: int) -> HttpResponse:
    """Change terms; a new price counts from its day on, history stays."""
    found = words.lease_found(lease_id)
    initial = {name: getattr(found, name) for name in _TERMS}
    form, prices = TermsChangeForm(request.POST or None, initial=initial), price_formset(request.POST or None)
    if request.method == "POST" and form.is_valid() and prices.is_valid():
        try:
            lease_terms_update(
                lease_id=lease_id,
                actor=Actor.from_request(request),
                prices=parts_of(prices),
                effective_from=form.cleaned_data["effective_from"],
                **_terms(form.cleaned_data),
            )
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("Saved."))
            return _back(lease_id)
    context = {"title": _("Terms of %(name)s") % {"name": found.title}, "form": form, "prices": prices, "lease": found}
    context |= rental_tabs("leases")
    return render(request, "leases/terms.html", context, status=400 if form.is_bound else 200)


@require_POST
@page(Capability.LEASES_MANAGE)
def close(request: PageRequest, lease_id: int) -> HttpResponse:
    """Write down that a typed-in contract has ended."""
    form = CloseForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("When did it end?"))
        return _back(lease_id)
    try:
        lease_close(
            lease_id=lease_id,
            ended_at=form.cleaned_data["ended_at"],
            actor=Actor.from_request(request),
            reason=form.cleaned_data["reason"],
        )
    except FleetdeckError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("The contract is closed."))
    return _back(lease_id)


@require_POST
@page(Capability.LEASES_MANAGE)
def attach(request: PageRequest, lease_id: int) -> HttpResponse:
    """Say which server it pays for; an empty choice unties it."""
    server_id = number_of(request.POST.get("server", ""))
    try:
        lease_attach(lease_id=lease_id, server_id=server_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("Saved."))
    return _back(lease_id)
