"""Accounts at providers: the list, adding one with a live check, changing, pausing, asking now, removing."""

from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from fleet.enums import DriftKind
from fleet.models import ProviderAccount
from fleet.providers.registry import PROVIDERS, provider_type
from fleet.services.accounts import account_create, account_remove, account_sync_soon, account_update
from fleet.services.drift_actions import drift_adopt
from frontend.access import PageRequest, page
from frontend.formatting import said_of
from frontend.forms import refuse
from frontend.leasing.accounts import account_found, account_rows, kind_label, kinds
from frontend.leasing.drifts import DriftRow
from frontend.leasing.forms import CREDENTIAL, OPTION, AccountForm, KeyForm
from frontend.leasing.tabs import open_drifts, rental_tabs
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import FleetdeckError

FOUND_SHOWN: Final = 50


def _back(account_id: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("provider", args=[account_id]))


@page(Capability.FLEET_VIEW)
def accounts(request: PageRequest) -> HttpResponse:
    """Show every account; without any, what one brings and which kinds there are."""
    context = {"title": _("Providers"), "rows": account_rows(), "kinds": kinds(), **rental_tabs("providers")}
    return render(request, "providers/page.html", context)


def _found(account: ProviderAccount) -> list[DriftRow]:
    unknown = open_drifts().filter(account=account, kind=DriftKind.UNKNOWN_AT_PROVIDER).order_by("pk")
    return [DriftRow(drift) for drift in unknown[:FOUND_SHOWN]]


def _remove_consequences() -> list[str]:
    return [
        _("Its key is wiped; the panel asks the provider nothing any more."),
        _("The history of its leases stays."),
        _("Machines that only the provider's console shows go on costing."),
    ]


@page(Capability.FLEET_VIEW)
def account(request: PageRequest, account_id: int) -> HttpResponse:
    """Show one account: how it is, what its key may do, what was found there."""
    row = account_found(account_id)
    context = {"row": row, "found": _found(row.account)}
    if request.GET.get("part") == "status":
        return render(request, "providers/status.html", context)
    context |= {"title": row.account.name, "consequences": _remove_consequences(), **rental_tabs("providers")}
    return render(request, "providers/one.html", context)


def _stored(form: AccountForm | KeyForm, work: Callable[[], ProviderAccount]) -> ProviderAccount | None:
    """Do the work of a valid form; a refusal is shown with the provider's words, None then."""
    try:
        return work()
    except FleetdeckError as error:
        refuse(form, error)
        return None


@sensitive_post_parameters()
@page(Capability.ACCOUNTS_MANAGE)
def account_new(request: PageRequest) -> HttpResponse:
    """Choose a kind of provider, then type in what an account there needs."""
    kind = request.GET.get("kind", "")
    context: dict[str, Any] = {"title": _("Add an account"), "kinds": kinds(), **rental_tabs("providers")}
    if kind not in PROVIDERS:
        return render(request, "providers/choose.html", context)
    provider = provider_type(kind)
    form = AccountForm(request.POST or None, kind=provider)
    if request.method == "POST" and form.is_valid():
        made = _stored(
            form,
            lambda: account_create(
                kind=kind,
                credentials=form.group(CREDENTIAL),
                options=form.group(OPTION),
                actor=Actor.from_request(request),
                **form.guards,
            ),
        )
        if made is not None:
            messages.success(request, _("%(name)s is added: the provider accepts its key.") % {"name": made.name})
            return _back(made.pk)
    context |= {"form": form, "kind": kind, "label": kind_label(kind)}
    context |= {"currency": provider.currency, "docs_url": provider.docs_url}  # a class in a template would be called
    return render(request, "providers/new.html", context, status=400 if form.is_bound else 200)


@page(Capability.ACCOUNTS_MANAGE)
def edit(request: PageRequest, account_id: int) -> HttpResponse:
    """Change what is not the key: name, guards, options. New options are tried at the provider first."""
    row = account_found(account_id)
    provider = provider_type(row.account.kind)
    form = AccountForm(request.POST or None, kind=provider, account=row.account)
    if request.method == "POST" and form.is_valid():
        options = form.group(OPTION)
        changes: dict[str, Any] = dict(form.guards)
        if options != {name: str(value) for name, value in row.account.options.items() if name in options}:
            changes["options"] = options
        actor = Actor.from_request(request)
        if _stored(form, lambda: account_update(account_id=account_id, actor=actor, **changes)) is not None:
            messages.success(request, _("Saved."))
            return _back(account_id)
    context = {"title": _("Change %(name)s") % {"name": row.account.name}, "form": form, "row": row}
    context |= {"key_form": KeyForm(kind=provider), **rental_tabs("providers")}
    return render(request, "providers/edit.html", context, status=400 if form.is_bound else 200)


@require_POST
@sensitive_post_parameters()
@page(Capability.ACCOUNTS_MANAGE)
def key(request: PageRequest, account_id: int) -> HttpResponse:
    """Replace the key once the provider accepts the new one; the present one is never shown."""
    row = account_found(account_id)
    provider = provider_type(row.account.kind)
    form = KeyForm(request.POST, kind=provider)
    if form.is_valid():
        changes: dict[str, Any] = {"actor": Actor.from_request(request), "credentials": form.group(CREDENTIAL)}
        changes["is_same_login"] = form.cleaned_data["is_same_login"]
        if _stored(form, lambda: account_update(account_id=account_id, **changes)) is not None:
            messages.success(request, _("The provider accepts the new key; the old one is forgotten."))
            return _back(account_id)
    context = {"title": _("Change %(name)s") % {"name": row.account.name}, "row": row, "key_form": form}
    context |= {"form": AccountForm(kind=provider, account=row.account), **rental_tabs("providers")}
    return render(request, "providers/edit.html", context, status=400)


@require_POST
@page(Capability.ACCOUNTS_MANAGE)
def pause(request: PageRequest, account_id: int) -> HttpResponse:
    """Switch the asking off or on."""
    is_paused = request.POST.get("is_paused") == "true"
    account_update(account_id=account_id, actor=Actor.from_request(request), is_paused=is_paused)
    messages.success(request, _("The account is paused.") if is_paused else _("The account is asked again."))
    return _back(account_id)


@require_POST
@page(Capability.LEASES_MANAGE)
def sync(request: PageRequest, account_id: int) -> HttpResponse:
    """Let the next tick ask the provider."""
    account_sync_soon(account_id=account_id, actor=Actor.from_request(request))
    messages.success(request, _("The provider is asked within seconds."))
    return _back(account_id)


@require_POST
@page(Capability.LEASES_MANAGE)
def adopt(request: PageRequest, account_id: int) -> HttpResponse:
    """Take on every machine that was found in the account."""
    actor, done = Actor.from_request(request), 0
    for row in _found(account_found(account_id).account):
        try:
            drift_adopt(drift_id=row.drift.pk, actor=actor)
        except FleetdeckError as error:
            messages.error(request, said_of(row.name, error.message))
        else:
            done += 1
    if done:
        said = ngettext("%(count)s machine is adopted.", "%(count)s machines are adopted.", done) % {"count": done}
        messages.success(request, said)
    return _back(account_id)


@require_POST
@page(Capability.ACCOUNTS_MANAGE)
def remove(request: PageRequest, account_id: int) -> HttpResponse:
    """Remove an account once its name was typed; refused while leases of it are open."""
    row = account_found(account_id)
    if request.POST.get("typed_name", "").strip() != row.account.name:
        messages.error(request, _("The name did not match; nothing was removed."))
        return _back(account_id)
    try:
        account_remove(account_id=account_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
        return _back(account_id)
    messages.success(request, _("%(name)s is removed. Its history stays.") % {"name": row.account.name})
    return HttpResponseRedirect(reverse("providers"))
