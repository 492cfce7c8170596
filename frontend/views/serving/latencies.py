"""The tab of an endpoint that tells how long it takes, and from where."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from frontend.access import PageRequest, page, role_of
from frontend.ranges import time_range
from frontend.serving.latency import latency_context
from frontend.serving.listing import endpoint_found
from frontend.serving.tabs import endpoint_tabs
from panel.accounts.capabilities import Capability
from panel.core.clock import now

DEFAULT_RANGE = "24h"


@page(Capability.FLEET_VIEW)
def latency(request: PageRequest, endpoint_id: int) -> HttpResponse:
    """Show probes by place, engines beside them, queue against compute, and what is not told. A day unless said."""
    found = endpoint_found(endpoint_id)
    asked = request.GET if {"range", "from", "to"} & set(request.GET) else {"range": DEFAULT_RANGE}
    context = latency_context(found, time_range(asked, now=now()))
    if request.GET.get("part") == "latency":
        return render(request, "endpoints/latency_part.html", context | {"endpoint": found})
    context |= endpoint_tabs(found, "endpoint-latency", role_of(request))
    return render(
        request, "endpoints/latency.html", context | {"title": _("Latency of %(name)s") % {"name": found.name}}
    )
