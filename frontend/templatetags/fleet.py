"""Filters of the fleet's pages: tones of activities, raw numbers for scripts, steps of the heat strip."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from html import escape
from typing import Final

from django import template
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import get_language

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
    """Return what a cell is painted by; a busy card that tells no share (one cut into MIG slices) has no shade."""
    percent = row.values.get("utilization_percent")
    if row.activity != Activity.BUSY or percent is None:
        return str(row.activity)
    return str(min(HEAT_STEPS, int(percent // (100 / HEAT_STEPS)) + 1))


@register.filter
def heat_steps(rows: Iterable[GpuRow]) -> set[str]:
    """Return what the cells of these cards are painted by, so that a key lists what is there."""
    return {_heat_step(row) for row in rows}


@register.filter
def gpu_href(gpu_id: int) -> str:
    """Return the address of a card; asked for thousands of times a page, so the pattern is resolved once."""
    return _address("gpu") % gpu_id


@register.filter
def server_href(server_id: int) -> str:
    """Return the address of a server, in the same way."""
    return _address("server") % server_id


@cache
def _address(name: str) -> str:
    return reverse(name, args=[0]).replace("/0/", "/%d/")


@register.simple_tag
def gpu_data(row: GpuRow) -> SafeString:
    """Return the attributes by which scripts know a card (static/js/readings.js)."""
    return SafeString(f'{_known(row)} data-limit="{raw(row.power_limit_watts)}"')


def _known(row: GpuRow) -> str:
    """Return what scripts judge a card by. Numbers, times and words of our own enums: nothing that needs escaping."""
    return (
        f'data-gpu="{row.id}" data-at="{iso(row.at)}" data-interval="{raw(row.interval_seconds)}"'
        f' data-state="{row.state}" data-total="{raw(row.memory_total_bytes)}"'
        f' data-processes="{raw(row.processes)}" data-doing="{row.activity.value}"'
    )


@register.simple_tag
def heat_cells(rows: Iterable[GpuRow], *, mini: bool = False) -> SafeString:
    """Return the cells of a server's cards: links whose shade, pattern and number say what each card does.

    mini: the small cells of a list, without the number. In Python, because the strip has one for each card of the fleet.
    """
    words = _activity_words(get_language())
    return SafeString("".join(_heat_cell(row, words[row.activity], mini=mini) for row in rows))


@cache
def _activity_words(_language: str | None) -> dict[Activity, str]:
    return {activity: escape(str(activity.label)) for activity in Activity}


def _heat_cell(row: GpuRow, word: str, *, mini: bool) -> str:
    label, name, number = escape(row.label), escape(row.name), ""
    if not mini:
        figure = plain(row.values.get("utilization_percent"), "percent")
        number = f'<span class="heat-number" data-r="utilization_percent" data-k="percent">{figure}</span>'
    return (
        f'<a class="heat{" mini-heat" if mini else ""}" href="{gpu_href(row.id)}" data-heat="{_heat_step(row)}"'
        f' {_known(row)} title="{label} {name} · {word}" data-calm>'
        f'<span class="visually-hidden">{label} <span class="heat-word">{word}</span> </span>{number}</a>'
    )


@register.filter
def plain(value: float | str | None, kind: str) -> str:
    """Return a number without its unit, or a dash without markup, for cells in which scripts write."""
    return "—" if value is None or value == "" else formatting.number(float(value), kind)
