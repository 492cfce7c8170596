"""Numbers as people read them, for the checks."""

from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import pgettext


def seconds(value: float) -> str:
    """Return a duration in its largest sensible unit: 0.3 s, 42 s, 5 min, 3 h, 2 d."""
    if value < 10:
        return _("%(number)s s") % {"number": f"{value:.1f}"}
    if value < 120:
        return _("%(number)s s") % {"number": f"{value:.0f}"}
    if value < 7_200:
        return _("%(number)s min") % {"number": f"{value / 60:.0f}"}
    if value < 172_800:
        return _("%(number)s h") % {"number": f"{value / 3600:.0f}"}
    return _("%(number)s d") % {"number": f"{value / 86_400:.0f}"}


def size(value: float) -> str:
    """Return a number of bytes with a binary unit: 512 MiB, 1.5 GiB."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    index = 0
    while value >= 1024 and index < len(units) - 1:
        value /= 1024
        index += 1
    return f"{value:.0f} {units[index]}" if index < 3 else f"{value:.1f} {units[index]}"


def percent(value: float) -> str:
    """Return a share without decimals: 42 %."""
    return f"{value:.0f} %"


def phrases(*parts: str) -> str:
    """Return phrases one after the other, with the mark that the language puts between them: "3 alive, last 2 s ago"."""
    return pgettext("between phrases", ", ").join(parts)


def things(names: Iterable[str]) -> str:
    """Return names one after the other, with the mark that the language puts between them: "web, worker"."""
    return _(", ").join(names)
