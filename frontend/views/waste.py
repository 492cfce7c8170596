"""What is paid for and does nothing."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import pgettext
from django.views.decorators.http import require_safe

from frontend.access import PageRequest, page
from frontend.leasing.tabs import rental_tabs
from frontend.waste import LISTED, RANGES, lines, tiles
from monitoring.waste.selectors import waste as waste_found
from panel.accounts.capabilities import Capability
from panel.core.clock import now


@require_safe
@page(Capability.FLEET_VIEW)
def waste(request: PageRequest) -> HttpResponse:
    """List cards with quiet time, the dearest first."""
    at = now()
    chosen = request.GET.get("range", "")
    span, __ = RANGES.get(chosen, RANGES["1d"])
    found = waste_found(start=at - span, end=at, at=at)
    context = {
        "title": pgettext("money", "Waste"),
        "at": at,
        "ranges": [
            {"key": key, "label": label, "current": key == (chosen if chosen in RANGES else "1d")}
            for key, (__, label) in RANGES.items()
        ],
        "tiles": tiles(found),
        "lines": lines(found),
        "left_out": max(len(found.rows) - LISTED, 0),
        **rental_tabs("waste"),
    }
    return render(request, "waste/page.html", context)
