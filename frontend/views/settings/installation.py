"""Facts of this installation, read only: they are set in its environment."""

import platform

from django import get_version
from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext as _

from fleet.models import Agent
from frontend.access import PageRequest, page
from frontend.formatting import duration
from frontend.views.settings.tabs import settings_page
from panel.accounts.capabilities import Capability

HOUR, DAY = 3_600, 86_400
REPORT_INTERVAL_SECONDS = Agent._meta.get_field("report_interval_seconds").default  # noqa: SLF001 (Django's public way)


@page(Capability.HEALTH_VIEW)
def installation(request: PageRequest) -> HttpResponse:
    """Show addresses, retention and versions, each with the variable that sets it."""
    mirrors = ", ".join(f"{name}: {address}" for name, address in sorted(settings.PACKAGE_MIRRORS.items()))
    zone = settings.DISPLAY_TIME_ZONE or _("each viewer's browser")
    rows = [
        (_("Public address"), settings.PUBLIC_URL, "FLEETDECK_PUBLIC_URL"),
        (_("Time zone"), zone, "FLEETDECK_TIME_ZONE"),
        (_("Behind a proxy"), _("yes") if settings.BEHIND_PROXY else _("no"), "FLEETDECK_BEHIND_PROXY"),
        (_("Package mirrors for agents"), mirrors or _("none"), "FLEETDECK_PACKAGE_MIRRORS"),
        (_("Full resolution kept"), duration(settings.RAW_RETENTION_HOURS * HOUR), "FLEETDECK_RAW_RETENTION_HOURS"),
        (_("Minutes kept"), duration(settings.MINUTE_RETENTION_DAYS * DAY), "FLEETDECK_MINUTE_RETENTION_DAYS"),
        (_("Hours kept"), duration(settings.HOUR_RETENTION_DAYS * DAY), "FLEETDECK_HOUR_RETENTION_DAYS"),
        (
            _("An agent reports"),
            _("every %(time)s") % {"time": duration(REPORT_INTERVAL_SECONDS)},
            _("each agent, over the API"),
        ),
        (
            _("… while somebody watches"),
            _("every %(time)s") % {"time": duration(settings.WATCHED_INTERVAL_SECONDS)},
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
