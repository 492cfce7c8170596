"""The Overview: what needs somebody, what the fleet does, what happened last, and whether this screen is alive."""

from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from fleet.models import GpuFault, ProviderAccount
from fleet.selectors.costs import joint_total
from frontend.access import PageRequest, page
from frontend.alerting.listing import alerts_attention
from frontend.attention import SHOWN, attention, counts, worst_first
from frontend.events.rows import row_of
from frontend.fleet_reading import fleet_rows
from frontend.fleet_rows import FleetRows
from frontend.leasing.attention import rental_attention
from frontend.leasing.leases import rate_now
from frontend.server_notes import server_notes
from frontend.serving.attention import serving_attention
from frontend.serving.listing import endpoint_counts
from panel.accounts.capabilities import Capability
from panel.accounts.selectors.audit import event_list
from panel.core.clock import now
from panel.core.enums import Severity

EVENTS_SHOWN: Final = 10
FAULT_WINDOW: Final = timedelta(hours=24)


def _faults(fleet: FleetRows) -> dict[str, int]:
    """Count the faults of a day that matter. One query."""
    recent = GpuFault.objects.filter(last_at__gte=fleet.now - FAULT_WINDOW, server__retired_at=None)
    severities = list(recent.exclude(severity=Severity.INFO).values_list("severity", flat=True))
    return {"all": len(severities), "critical": severities.count(Severity.CRITICAL)}


def _context(fleet: FleetRows) -> dict[str, Any]:
    found = [
        *attention(fleet),
        *rental_attention(fleet.now),
        *serving_attention(fleet.now),
        *alerts_attention(fleet.now),
    ]
    items = worst_first(found, now=fleet.now)
    notes = server_notes(fleet)
    rates, leases, unknown = rate_now(fleet.now)
    return {
        "money": {"rates": rates, "leases": leases, "unknown": unknown, "joint": joint_total(rates, at=fleet.now)},
        "fleet": fleet,
        "counts": counts(fleet),
        "endpoints": endpoint_counts(),
        "notes": notes,
        "is_all_heard": all(note.tone == "ok" for note in notes),
        "attention": items[:SHOWN],
        "more": max(0, len(items) - SHOWN),
        "faults": _faults(fleet),
        "events": [row_of(event, sees_users=False) for event in event_list()[:EVENTS_SHOWN]],
    }


@page(Capability.FLEET_VIEW)
def overview(request: PageRequest) -> HttpResponse:
    """Show the fleet in sentences and one strip; without any server, how to add one."""
    if request.GET.get("part") == "endpoints":
        return render(request, "overview/endpoints.html", {"endpoints": endpoint_counts()})
    fleet = fleet_rows(now=now())
    if request.GET.get("part") == "status":
        return render(request, "overview/status.html", _context(fleet))
    context = {"title": _("Overview"), "nav": "overview"}
    if not fleet.servers and not ProviderAccount.objects.filter(removed_at=None).exists():
        return render(request, "overview/empty.html", context)
    return render(request, "overview/page.html", {**context, **_context(fleet)})
