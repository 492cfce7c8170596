"""Self-health: whether this panel can be trusted at the moment."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from frontend.access import PageRequest, page
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.health import CheckStatus, health_checks, worst


@page(Capability.HEALTH_VIEW)
def self_health(request: PageRequest) -> HttpResponse:
    """Show every check with its limit and advice; the list renews itself while the page is open."""
    checks = health_checks()
    verdict = worst(checks)
    sentences = {
        CheckStatus.OK: _("All checks pass: what the pages show is current."),
        CheckStatus.WARNING: _("Something needs a look. What the pages show is current."),
        CheckStatus.CRITICAL: _("Something is broken. What the pages show may be old or incomplete."),
        CheckStatus.UNKNOWN: _("Some checks could not be run, so nobody can say."),
    }
    context = {
        "title": _("Self-health"),
        "checks": checks,
        "verdict": verdict.value,
        "sentence": sentences[verdict],
        "checked_at": now(),
    }
    template = "self_health/checks.html" if request.headers.get("HX-Request") else "self_health/page.html"
    return render(request, template, context)
