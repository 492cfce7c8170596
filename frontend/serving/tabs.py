"""The tabs over the pages of endpoints, and those of one endpoint."""

from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from endpoints.models import Endpoint
from panel.accounts.capabilities import Capability, has_capability

_SECTION: Final = (
    ("endpoints", _("Endpoints"), Capability.FLEET_VIEW),
    ("gateways", _("Gateways"), Capability.FLEET_VIEW),
    ("endpoint-keys", _("Keys"), Capability.ENDPOINTS_MANAGE),
    ("secrets", pgettext_lazy("of engines", "Secrets"), Capability.ENDPOINTS_MANAGE),
)
_ONE: Final = (
    ("endpoint", _("Overview"), Capability.FLEET_VIEW),
    ("endpoint-latency", _("Latency"), Capability.FLEET_VIEW),
    ("endpoint-replicas", _("Replicas"), Capability.FLEET_VIEW),
    ("endpoint-revisions", _("Revisions"), Capability.FLEET_VIEW),
    ("endpoint-one-keys", _("Keys"), Capability.ENDPOINTS_MANAGE),
    ("endpoint-settings", _("Settings"), Capability.FLEET_VIEW),
)


def section_tabs(current: str, role: str) -> dict[str, Any]:
    """Return what components/tabs.html and the rail need on each page of the section: those that the role may open."""
    tabs = [
        {"href": reverse(name), "label": label, "current": name == current}
        for name, label, capability in _SECTION
        if has_capability(role, capability)
    ]
    return {"nav": "endpoints", "section_tabs": tabs}


def endpoint_tabs(endpoint: Endpoint, current: str, role: str) -> dict[str, Any]:
    """Return the tabs of one endpoint."""
    tabs = [
        {"href": reverse(name, args=[endpoint.pk]), "label": label, "current": name == current}
        for name, label, capability in _ONE
        if has_capability(role, capability)
    ]
    return {"nav": "endpoints", "endpoint_tabs": tabs, "endpoint": endpoint}
