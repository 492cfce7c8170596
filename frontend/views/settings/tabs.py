"""The tabs above every page of the settings."""

from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from frontend.access import PageRequest
from panel.accounts.capabilities import Capability, has_capability

TABS: Final[tuple[tuple[str, Promise, Capability], ...]] = (
    ("settings", _("Profile"), Capability.PROFILE_EDIT),
    ("settings-users", _("Users"), Capability.USERS_MANAGE),
    ("settings-tokens", _("API tokens"), Capability.TOKENS_OWN),
    ("settings-sessions", _("Sessions"), Capability.PROFILE_EDIT),
    ("settings-installation", _("Installation"), Capability.HEALTH_VIEW),
)


def settings_page(request: PageRequest, template: str, tab: str, *, status: int = 200, **context: Any) -> HttpResponse:
    """Render a page of the settings under its tab."""
    tabs = [
        {"href": reverse(name), "label": label, "current": name == tab}
        for name, label, capability in TABS
        if has_capability(request.user.role, capability)
    ]
    return render(request, template, {"nav": "settings", "tabs": tabs, **context}, status=status)
