"""Numbers and times as people read them. Pure; the same rules are in static/js/format.js for live values."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

GIB: Final = 1024**3
JUST_NOW_SECONDS: Final = 5

# Why a reading is missing, by the reasons of fleet.agent.wire.REASONS.
MISSING_REASONS: Final = {
    "": gettext_lazy("no reading"),
    "not_supported": gettext_lazy("not supported by this card"),
    "no_permission": gettext_lazy("the agent may not read it"),
    "gpu_lost": gettext_lazy("the card fell off the bus"),
    "reset_required": gettext_lazy("the card needs a reset"),
    "not_answering": gettext_lazy("the driver does not answer"),
    "handle_refused": gettext_lazy("the driver refused the card"),
    "mig_mode": gettext_lazy("not available in MIG mode"),
    "unknown_error": gettext_lazy("the driver gave an unknown error"),
    "insufficient_power": gettext_lazy("the card lacks external power"),
    "driver_unavailable": gettext_lazy("the driver cannot be asked"),
    "function_not_found": gettext_lazy("this driver is too old for it"),
    "not_reporting": gettext_lazy("the agent is silent"),
    "never": gettext_lazy("never"),
}


def missing_reason(reason: str) -> str:
    """Return the words for a reason code; a text that is no code is used as it is."""
    return str(MISSING_REASONS.get(reason, reason))


def _scaled(value: float, divisor: float) -> str:
    scaled = value / divisor
    return f"{scaled:,.1f}" if abs(scaled) < 100 else f"{scaled:,.0f}"


def _latency(value: float) -> str:
    return f"{value:,.0f} ms" if abs(value) < 1000 else f"{value / 1000:,.2f} s"


# kind → (number, unit). The unit goes into the header of a table and behind the number elsewhere.
KINDS: Final[dict[str, tuple[Callable[[float], str], str]]] = {
    "gib": (lambda v: f"{v / GIB:,.1f}", "GiB"),
    "mb_per_second": (lambda v: _scaled(v, 1e6), "MB/s"),
    "watts": (lambda v: f"{v:,.0f}", "W"),
    "kwh": (lambda v: f"{v:,.2f}", "kWh"),
    "celsius": (lambda v: f"{v:,.0f}", "°C"),
    "percent": (lambda v: f"{v:,.0f}", "%"),
    "mhz": (lambda v: f"{v:,.0f}", "MHz"),
    "load": (lambda v: f"{v:,.2f}", ""),
    "count": (lambda v: f"{v:,.0f}", ""),
    "latency": (_latency, ""),
    "per_second": (lambda v: f"{v:,.2f}" if abs(v) < 100 else f"{v:,.0f}", "/s"),
}


def number(value: float, kind: str) -> str:
    """Return a value without its unit, e.g. bytes → "140.4" for kind "gib"."""
    return KINDS[kind][0](float(value))


def with_unit(value: float, kind: str) -> str:
    """Return a value with its unit, e.g. "140.4 GiB"; a percent sign follows without a space."""
    unit = KINDS[kind][1]
    gap = "" if unit in {"", "%", "/s"} else "\N{NO-BREAK SPACE}"
    return f"{number(value, kind)}{gap}{unit}"


def duration(seconds: float) -> str:
    """Return the two largest units of a duration: "3 m 12 s", "2 d"; under a second "0 s"."""
    total = int(abs(seconds))
    days, rest = divmod(total, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, secs = divmod(rest, 60)
    parts = {"days": days, "hours": hours, "minutes": minutes, "seconds": secs}
    if days:
        words = _("%(days)d d %(hours)d h") if hours else _("%(days)d d")
    elif hours:
        words = _("%(hours)d h %(minutes)d m") if minutes else _("%(hours)d h")
    elif minutes:
        words = _("%(minutes)d m %(seconds)d s") if secs else _("%(minutes)d m")
    else:
        words = _("%(seconds)d s")
    return words % parts


def ago(then: datetime, now: datetime) -> str:
    """Return how long ago (rounded down), or in how long (to the nearest), in one unit: "3 minutes ago", "in 2 days"."""
    seconds = (now - then).total_seconds()
    for size, past, future in _AGO_UNITS:
        if abs(seconds) >= max(size, JUST_NOW_SECONDS):
            return past(int(seconds // size)) if seconds > 0 else future(int(-seconds / size + 0.5))
    return _("just now")


_AGO_UNITS: Final[list[tuple[int, Callable[[int], str], Callable[[int], str]]]] = [
    (
        86_400,
        lambda n: ngettext("%d day ago", "%d days ago", n) % n,
        lambda n: ngettext("in %d day", "in %d days", n) % n,
    ),
    (
        3_600,
        lambda n: ngettext("%d hour ago", "%d hours ago", n) % n,
        lambda n: ngettext("in %d hour", "in %d hours", n) % n,
    ),
    (
        60,
        lambda n: ngettext("%d minute ago", "%d minutes ago", n) % n,
        lambda n: ngettext("in %d minute", "in %d minutes", n) % n,
    ),
    (
        1,
        lambda n: ngettext("%d second ago", "%d seconds ago", n) % n,
        lambda n: ngettext("in %d second", "in %d seconds", n) % n,
    ),
]


def offset_label(at: datetime) -> str:
    """Return the zone of an aware time as "UTC", "UTC+8" or "UTC+5:30"."""
    offset = at.utcoffset() or timedelta()
    minutes = int(offset.total_seconds() // 60)
    if minutes == 0:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '−'}{hours}{f':{rest:02d}' if rest else ''}"


def absolute(at: datetime, *, zone: bool = True, seconds: bool = True) -> str:
    """Return a time in the viewer's (active) zone: "2026-03-10 14:05:09 UTC+8"."""
    local = timezone.localtime(at)
    text = local.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
    return f"{text} {offset_label(local)}" if zone else text


def listed(items: Iterable[str]) -> str:
    """Return things side by side, with the mark that the language puts between them: "#1, #4"."""
    return _(", ").join(items)


def said_of(name: str, text: str) -> str:
    """Return a sentence about something, with the mark that the language puts after its name: "rack-1: it is silent"."""
    return _("%(name)s: %(text)s") % {"name": name, "text": text}
