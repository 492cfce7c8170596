"""Filters of the fleet's pages: tones of activities, raw numbers for scripts, steps of the heat strip."""

from datetime import UTC, datetime
from functools import cache
from typing import Final

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

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


def _heat_step(row: GpuRow) -> str:
    if row.activity != Activity.BUSY:
        return str(row.activity)
    percent = row.values.get("utilization_percent") or 0
    return str(min(HEAT_STEPS, int(percent // (100 / HEAT_STEPS)) + 1))


def _gpu_href(gpu_id: int) -> str:
    """Return the address of a card; asked for thousands of times a page, so it is resolved once."""
    return _gpu_address() % gpu_id


@cache
def _gpu_address() -> str:
    return reverse("gpu", args=[0]).replace("/0/", "/%d/")


@register.simple_tag
def gpu_data(row: GpuRow) -> SafeString:
    """Return the attributes by which scripts know a card (static/js/readings.js)."""
    return format_html(
        'data-gpu="{}" data-at="{}" data-interval="{}" data-state="{}" data-total="{}" data-limit="{}" data-processes="{}"'
        ' data-doing="{}"',
        row.id,
        iso(row.at),
        raw(row.interval_seconds),
        row.state,
        raw(row.memory_total_bytes),
        raw(row.power_limit_watts),
        raw(row.processes),
        str(row.activity),
    )


@register.simple_tag
def heat_cell(row: GpuRow, *, mini: bool = False) -> SafeString:
    """Return one cell of the heat strip: a link whose shade, pattern and number say what the card does.

    mini: the small cell of a list, without the number. In Python, because the strip has one for each card of the fleet.
    """
    word = row.activity.label
    number = (
        ""
        if mini
        else format_html(
            '<span class="heat-number" data-r="utilization_percent" data-k="percent">{}</span>',
            plain(row.values.get("utilization_percent"), "percent"),
        )
    )
    return format_html(
        '<a class="heat{}" href="{}" data-heat="{}" {} title="{} {} · {}" data-calm>'
        '<span class="visually-hidden">{} {} </span>{}</a>',
        " mini-heat" if mini else "",
        _gpu_href(row.id),
        _heat_step(row),
        gpu_data(row),
        row.label,
        row.name,
        word,
        row.label,
        word,
        number,
    )


@register.filter
def plain(value: float | str | None, kind: str) -> str:
    """Return a number without its unit, or a dash without markup, for cells in which scripts write."""
    return "—" if value is None or value == "" else formatting.number(float(value), kind)
