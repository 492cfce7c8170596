"""Exchange rates that people enter: the list, a new one, one that goes."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from fleet.selectors.leasing import exchange_rate_list
from fleet.services.rates import rate_enter, rate_remove
from frontend.access import PageRequest, page
from frontend.forms import refuse
from frontend.leasing.rates import LISTED, RateForm, rate_rows
from frontend.leasing.tabs import rental_tabs
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError


@require_safe
@page(Capability.FLEET_VIEW)
def rates(request: PageRequest) -> HttpResponse:
    """Show the rates."""
    return _shown(request, RateForm(initial={"quote": "CNY", "effective_on": now().date()}))


@require_POST
@page(Capability.ACCOUNTS_MANAGE)
def enter(request: PageRequest) -> HttpResponse:
    """Enter a rate."""
    form = RateForm(request.POST)
    if form.is_valid():
        try:
            rate_enter(actor=Actor.from_request(request), **form.cleaned_data)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("The rate is entered."))
            return HttpResponseRedirect(reverse("exchange-rates"))
    return _shown(request, form)


def _shown(request: PageRequest, form: RateForm) -> HttpResponse:
    at = now()
    found = list(exchange_rate_list().order_by("-effective_on", "-pk")[:LISTED])
    context = {
        "title": _("Exchange rates"),
        "form": form,
        "rows": rate_rows(found, at),
        "consequences": [
            _("Sums of several currencies that used it are apart again, or use an earlier rate."),
            _("Budgets no longer count by it what was spent in the other currency."),
        ],
        **rental_tabs("exchange-rates"),
    }
    return render(request, "rates/page.html", context, status=400 if form.is_bound else 200)


@require_POST
@page(Capability.ACCOUNTS_MANAGE)
def remove(request: PageRequest, rate_id: int) -> HttpResponse:
    """Take a rate away."""
    try:
        rate_remove(rate_id=rate_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("The rate is removed."))
    return HttpResponseRedirect(reverse("exchange-rates"))
