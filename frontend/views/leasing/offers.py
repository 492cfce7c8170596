"""Offers of all accounts in one table, up to four of them side by side, and the order of one."""

import uuid
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from fleet.agent_package.installer import panel_url
from fleet.models import Lease, Operation, ProviderAccount, Server
from fleet.providers.base import CanOrder, abilities
from fleet.providers.registry import PROVIDERS
from fleet.selectors.leasing import offer_list
from fleet.services.ordering import order_place
from fleet.services.planning import Plan, order_plan
from frontend.access import PageRequest, page
from frontend.forms import refuse
from frontend.leasing import order as words
from frontend.leasing.accounts import account_found
from frontend.leasing.forms import OPTION, OrderForm
from frontend.leasing.offers import COLUMNS, COMPARED, choices, currencies_of, filtered, number_of, read_filter
from frontend.leasing.tabs import page_number, rental_tabs, rows_of
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import FleetdeckError, NotFound

KEY_LENGTH: Final = 64


@page(Capability.FLEET_VIEW)
def offers(request: PageRequest) -> HttpResponse:
    """Show what can be rented; filters, order and page are in the address."""
    wanted = read_filter(request.GET.dict())
    found = filtered(wanted)
    context = {
        "title": _("Offers"),
        "wanted": wanted,
        "columns": COLUMNS,
        "list": rows_of(found, page_number(request.GET.get("page", ""))),
        "mixed": currencies_of(found) if wanted.is_by_price else [],
        "for_server": _server(request.GET.get("server", "")),
        "orderable": {kind for kind, provider in PROVIDERS.items() if "order" in abilities(provider)},
        "has_accounts": ProviderAccount.objects.filter(removed_at=None).exists(),
        "is_waiting": _is_waiting(wanted.account),
        "compared": COMPARED,
        **choices(),
        **rental_tabs("offers"),
    }
    return render(request, "offers/page.html", context)


@page(Capability.FLEET_VIEW)
def compare(request: PageRequest) -> HttpResponse:
    """Show up to four offers side by side."""
    ids = [pk for text in request.GET.getlist("offer") if (pk := number_of(text)) is not None]
    chosen = offer_list().in_bulk(ids[:COMPARED])
    rows = [chosen[pk] for pk in ids[:COMPARED] if pk in chosen]
    context = {
        "title": _("Compare offers"),
        "offers": rows,
        "left_out": max(0, len(ids) - COMPARED),
        "currencies": sorted({row.currency for row in rows}),
        **rental_tabs("offers"),
    }
    return render(request, "offers/compare.html", context)


def _is_waiting(account_id: int | None) -> bool:
    """Say whether offers of the account, or of any, are still to be fetched for the first time."""
    kinds = [kind for kind, provider in PROVIDERS.items() if "offers" in abilities(provider)]
    fresh = ProviderAccount.objects.filter(removed_at=None, is_paused=False, offers_at=None, kind__in=kinds)
    return (fresh if account_id is None else fresh.filter(pk=account_id)).exists()


def _server(text: str) -> Server | None:
    """Return the server that is to be built again, None when the address names none."""
    pk = number_of(text)
    return Server.objects.filter(pk=pk).first() if pk is not None else None


def _known(request: PageRequest, key: str) -> Operation | None:
    """Return the operation that this person began with this key: what a double click finds."""
    actor = Actor.from_request(request)
    if not key:
        return None
    return Operation.objects.filter(actor_kind=actor.kind, actor_id=actor.id, idempotency_key=key).first()


def _form(request: PageRequest, plan: Plan, server: Server | None) -> OrderForm:
    account = plan.offer.account
    provider = PROVIDERS[account.kind]
    assert issubclass(provider, CanOrder)  # noqa: S101 (order_plan refused the others)
    initial = {"max_price_per_hour": plan.price_per_hour.rounded().amount.normalize() if plan.price_per_hour else None}
    return OrderForm(
        request.POST or None,
        order_fields=tuple(provider.order_fields),
        choices=words.order_choices(account),
        has_budget_refusal="budget_cap" in plan.refusals,
        server=server,
        initial=initial,
    )


def _plan_context(plan: Plan) -> dict[str, Any]:
    account_row, refusals = account_found(plan.offer.account_id), words.refusals_of(plan)
    account = plan.offer.account
    return {
        "plan": plan,
        "offer": plan.offer,
        "account_row": account_row,
        "budget_tone": account_row.budget_tone or ("warning" if plan.budget_hours else ""),
        "refusals": refusals,
        "blocked": next((each.sentence for each in refusals if not each.is_overridable), ""),
        "stop_sentence": words.stop_sentence(plan.stop_effect),
        "lacks": words.lacks(account.kind),
        "usual_seconds": words.usual_time(account),
        "cost_sentence": words.cost_sentence(plan),
    }


@page(Capability.LEASES_MANAGE)
def order(request: PageRequest, offer_id: int) -> HttpResponse:
    """Show the plan and the form; a POST shows what will be ordered, and one that is confirmed orders it, once for its key."""
    key = request.POST.get("key", "")[:KEY_LENGTH] or uuid.uuid4().hex
    if request.method == "POST" and (known := _known(request, key)) is not None:
        return _to(known)
    offer = words.offer_found(offer_id)
    server = _server(request.POST.get("server", "") or request.GET.get("server", ""))
    plan = order_plan(account_id=offer.account_id, offer_id=offer_id)
    form = _form(request, plan, server)
    context = {"title": _("Order a machine"), "form": form, "key": key, "for_server": server, **rental_tabs("offers")}
    is_confirming = False
    if request.method == "POST" and form.is_valid():
        if request.POST.get("step") == "order" and (placed := _place(request, form, plan, server, key)) is not None:
            return _to(placed)
        is_confirming = not form.errors and request.POST.get("step") != "order" and _may_go_on(form, plan)
    context |= {"is_confirming": is_confirming, **_plan_context(plan)}
    is_refused = form.is_bound and not is_confirming
    return render(request, "offers/order.html", context, status=400 if is_refused else 200)


def _to(operation: Operation) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("operation", args=[operation.pk]))


def _may_go_on(form: OrderForm, plan: Plan) -> bool:
    """Say whether nothing stands against the order; what does is shown at the form."""
    if any(not each.is_overridable for each in words.refusals_of(plan)):
        form.add_error(None, _("What stands against it is above: this cannot be ordered now."))
    elif plan.refusals and not form.cleaned_data.get("override_reason"):
        form.add_error("override_reason", _("Say why the budget may be passed."))
    maximum, price = form.cleaned_data.get("max_price_per_hour"), plan.price_per_hour
    if maximum is not None and price is not None and price.amount > maximum:
        form.add_error("max_price_per_hour", _("The offer's price is above it."))
    return not form.errors


def _place(request: PageRequest, form: OrderForm, plan: Plan, server: Server | None, key: str) -> Operation | None:
    """Place the order; a refusal is shown at the form, None then. Another click that was first has placed it."""
    try:
        return order_place(
            account_id=plan.offer.account_id,
            offer_id=plan.offer.pk,
            server_name=form.cleaned_data.get("name", "") if server is None else server.name,
            server_id=server.pk if server is not None else None,
            options=form.group(OPTION),
            max_price_per_hour=form.cleaned_data["max_price_per_hour"],
            override_reason=form.cleaned_data.get("override_reason", ""),
            actor=Actor.from_request(request),
            key=key,
            url=panel_url(request),
        ).operation
    except FleetdeckError as error:
        known = _known(request, key)
        if known is None:
            refuse(form, error)
        return known


@page(Capability.LEASES_MANAGE)
def again(request: PageRequest, server_id: int) -> HttpResponse:
    """Lead to the same offer as a server's last lease, else to offers of the same cards, to build it again."""
    if not Server.objects.filter(pk=server_id).exists():
        raise NotFound(_("There is no such server, or it was removed."))
    last = Lease.objects.filter(server=server_id).order_by("-pk").first()
    spec = last.spec if last is not None else {}
    same = offer_list(account=last.account_id).filter(key=spec.get("offer_key") or "-").first() if last else None
    if same is not None and last is not None and last.account_id is not None:
        return HttpResponseRedirect(f"{reverse('order', args=[same.pk])}?server={server_id}")
    messages.info(request, _("The same offer is not there now; these come closest."))
    model = f"&model={spec['gpu_model']}" if spec.get("gpu_model") else ""
    return HttpResponseRedirect(f"{reverse('offers')}?server={server_id}{model}")
