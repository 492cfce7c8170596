"""The tabs over the pages of alerting."""

from typing import Any, Final

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

_SECTION: Final = (
    ("alerts", _("Alerts")),
    ("rules", _("Rules")),
    ("silences", _("Silences")),
    ("channels", _("Channels")),
    ("notifications", _("Notifications")),
)


def alerting_tabs(current: str) -> dict[str, Any]:
    """Return what components/section_tabs.html and the rail need on each page of the section."""
    return {"nav": "alerts", "section_tabs": [tab for name, label in _SECTION if (tab := _tab(name, label, current))]}


def _tab(name: str, label: Any, current: str) -> dict[str, Any] | None:
    try:
        return {"href": reverse(name), "label": label, "current": name == current}
    except NoReverseMatch:
        return None
