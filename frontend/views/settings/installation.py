"""Facts of this installation, read only: they are set in its environment."""

import platform

from django import get_version
from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext as _

from frontend.access import PageRequest, page
from frontend.formatting import duration
from frontend.views.settings.tabs import settings_page
from panel.accounts.capabilities import Capability

HOUR, DAY = 3_600, 86_400


@page(Capability.HEALTH_VIEW)
def installation(request: PageRequest) -> HttpResponse:
    """Show addresses, retention and versions, each with the variable that sets it."""
    zone = settings.DISPLAY_TIME_ZONE or _("each viewer's browser")
    rows = [
        (_("Public address"), settings.PUBLIC_URL, "FLEETDECK_PUBLIC_URL"),
        (_("Time zone"), zone, "FLEETDECK_TIME_ZONE"),
        (_("Behind a proxy"), _("yes") if settings.BEHIND_PROXY else _("no"), "FLEETDECK_BEHIND_PROXY"),
        (_("Full resolution kept"), duration(settings.RAW_RETENTION_HOURS * HOUR), "FLEETDECK_RAW_RETENTION_HOURS"),
        (_("Minutes kept"), duration(settings.MINUTE_RETENTION_DAYS * DAY), "FLEETDECK_MINUTE_RETENTION_DAYS"),
        (_("Hours kept"), duration(settings.HOUR_RETENTION_DAYS * DAY), "FLEETDECK_HOUR_RETENTION_DAYS"),
        (
            _("Interval while watched"),
            duration(settings.WATCHED_INTERVAL_SECONDS),
            "FLEETDECK_WATCHED_INTERVAL_SECONDS",
        ),
    ]
    versions = [
        ("Fleetdeck", settings.VERSION),
        ("Python", platform.python_version()),
        ("Django", get_version()),
    ]
    return settings_page(
        request,
        "settings/installation.html",
        "settings-installation",
        title=_("Installation"),
        rows=rows,
        versions=versions,
    )
