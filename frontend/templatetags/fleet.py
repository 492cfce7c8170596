"""Filters of the fleet's pages: tones of activities, raw numbers for scripts, steps of the heat strip."""

from datetime import UTC, datetime
from typing import Final

from django import template

from fleet import advice
from fleet.enums import GpuState
from frontend import formatting
from frontend.fleet_rows import GpuRow
from monitoring.activity import Activity

register = template.Library()

ACTIVITY_TONES: Final = {
    Activity.BUSY: "ok",
    Activity.PARKED: "silenced",
    Activity.IDLE: "silenced",
    Activity.GHOST: "warning",
    Activity.CANNOT_TELL: "unknown",
    Activity.NO_DATA: "unknown",
    Activity.MISSING: "critical",
    Activity.LOST: "critical",
}
HEAT_STEPS: Final = 5


@register.filter
def activity_tone(row: GpuRow) -> str:
    """Return the tone of what a card does; one that answers in part is a warning, whatever it does."""
    tone = ACTIVITY_TONES[row.activity]
    return "warning" if row.state == GpuState.DEGRADED and tone != "critical" else tone


@register.filter
def activity_banner(row: GpuRow) -> str:
    """Return the tone of the sentence about a card: what is well stays plain."""
    tone = activity_tone(row)
    return tone if tone in {"warning", "critical"} else "unknown"


@register.filter
def reason_words(reason: str) -> str:
    """Return why a reading is missing, in words; nothing is "not supported"."""
    return str(advice.reason_words(reason or "not_supported"))


@register.filter
def iso(at: datetime | None) -> str:
    """Return a time for scripts (ISO 8601, UTC), or nothing."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else ""


@register.filter
def raw(value: float | None) -> str:
    """Return a number for scripts: no grouping, a point, and nothing when it is missing."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@register.filter
def plain(value: float | str | None, kind: str) -> str:
    """Return a number without its unit, or a dash without markup, for cells in which scripts write."""
    return "—" if value is None or value == "" else formatting.number(float(value), kind)


@register.filter
def heat(row: GpuRow) -> str:
    """Return the step of the heat strip, "1" to "5", or the activity of a card that does not work."""
    if row.activity != Activity.BUSY:
        return str(row.activity)
    percent = row.values.get("utilization_percent") or 0
    return str(min(HEAT_STEPS, int(percent // (100 / HEAT_STEPS)) + 1))
