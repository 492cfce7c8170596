"""What the shell around every page needs: navigation, preferences, the health strip, what the viewer may do."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from fleet.enums import ServerState
from fleet.models import Server
from frontend.formatting import offset_label
from frontend.preferences import Preferences, preferences_of
from monitoring.delivery.selectors import Trouble, trouble_told
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.models import User
from panel.core.clock import now


@dataclass(frozen=True, slots=True)
class NavEntry:
    """One entry of the rail. key: the `nav` of the page's context. shortcut: the second key after g."""

    key: str
    url_name: str
    label: Promise
    shortcut: str


NAVIGATION: Final = (
    NavEntry("overview", "overview", _("Overview"), "o"),
    NavEntry("fleet", "fleet", _("Fleet"), "f"),
    NavEntry("endpoints", "endpoints", _("Endpoints"), "e"),
    NavEntry("probes", "probes", _("Probes"), "p"),
    NavEntry("alerts", "alerts", _("Alerts"), "a"),
    NavEntry("rental", "leases", _("Rental"), "r"),
    NavEntry("events", "events", _("Events"), "v"),
    NavEntry("settings", "settings", _("Settings"), "s"),
)


class Can:
    """Template access to capabilities: `{% if can.servers_manage %}`."""

    def __init__(self, role: str) -> None:
        self._role = role

    def __getitem__(self, name: str) -> bool:
        """Return whether the viewer may do it. Raises KeyError for a name that no capability has."""
        return has_capability(self._role, Capability[name.upper()])


class Shell:
    """The shell's facts, each worked out when a template asks for it: fragments pay for none."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def preferences(self) -> Preferences:
        """Return how pages look to this viewer."""
        found: Preferences | None = getattr(self._request, "preferences", None)
        return found or preferences_of(self._request)

    @cached_property
    def zone_label(self) -> str:
        """Return the viewer's zone at this moment, e.g. "UTC+8"."""
        return offset_label(timezone.localtime(now(), self.preferences.zone))

    @cached_property
    def zone_element(self) -> SafeString:
        """Return the same as an element, which the browser corrects on a first visit."""
        return format_html("<span data-zone-label>{}</span>", self.zone_label)

    @cached_property
    def navigation(self) -> list[dict[str, Any]]:
        """Return the entries of the rail whose pages exist."""
        entries = []
        for entry in NAVIGATION:
            try:
                href = reverse(entry.url_name)
            except NoReverseMatch:
                continue
            entries.append({"key": entry.key, "href": href, "label": entry.label, "shortcut": entry.shortcut})
        return entries

    @cached_property
    def silent_agents(self) -> int:
        """Return how many servers' agents are silent."""
        return Server.objects.filter(state=ServerState.NOT_REPORTING, retired_at=None).count()

    @cached_property
    def delivery_trouble(self) -> Trouble | None:
        """Return what could not be delivered or is late, for those who may see it; None when nothing is."""
        user = getattr(self._request, "user", None)
        if not isinstance(user, User) or not has_capability(user.role, Capability.FLEET_VIEW):
            return None
        return trouble_told() or None

    @property
    def version(self) -> str:
        """Return the panel's version, for addresses that browsers keep."""
        return str(settings.VERSION)

    @property
    def languages(self) -> list[tuple[str, str]]:
        """Return the languages of the panel, each in its own words."""
        return list(settings.LANGUAGES)


def shell(request: HttpRequest) -> dict[str, Any]:
    """Add `shell` and `can` to every template."""
    user = getattr(request, "user", None)
    return {"shell": Shell(request), "can": Can(user.role if isinstance(user, User) else "")}
