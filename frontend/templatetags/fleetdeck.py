"""Filters and tags of every page: figures, times, tones, addresses. Missing is a dash with its reason, never zero.

{{ bytes|gib }} {{ bytes_per_second|mb_per_second }} {{ w|watts }} {{ c|celsius }} {{ p|percent }} {{ f|mhz }} {{ n|count }}
{{ ms|latency }} {{ seconds|duration }}: number and unit. The argument is the reason when it is missing: {{ w|watts:reason }}.
{{ bytes|bare:"gib" }}: the number alone, for a column whose header has the unit.
{% time at %} {% time at relative=True %} {% time at zone=False %}: the viewer's zone, UTC on hover.
{{ state|tone }}: the tone for components/status.html.   {% missing "not_supported" %}: the dash itself.
{% query tab="gpus" cursor=None %}: the present address' query with these changes.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from frontend import formatting
from frontend.status import tone_of
from panel.core import clock

if TYPE_CHECKING:
    from django.http import HttpRequest

MISSING = (
    '<span class="missing" title="{}"><span aria-hidden="true">—</span><span class="visually-hidden">{}</span></span>'
)

Figure = float | str | None  # "" is what a template gives for a name that it did not find

register = template.Library()
register.filter("tone", tone_of)


@register.simple_tag
def missing(reason: str = "") -> SafeString:
    """Return the dash of a missing value, with the reason as accessible text."""
    words = formatting.missing_reason(reason or "")
    return format_html(MISSING, words, words)


def _figure(value: Figure, kind: str, reason: str) -> str:
    return missing(reason) if value is None or value == "" else formatting.with_unit(float(value), kind)


@register.filter
def gib(value: Figure, reason: str = "") -> str:
    """Bytes as GiB with one decimal."""
    return _figure(value, "gib", reason)


@register.filter
def mb_per_second(value: Figure, reason: str = "") -> str:
    """Bytes per second as MB/s."""
    return _figure(value, "mb_per_second", reason)


@register.filter
def watts(value: Figure, reason: str = "") -> str:
    """Watts."""
    return _figure(value, "watts", reason)


@register.filter
def celsius(value: Figure, reason: str = "") -> str:
    """Degrees Celsius."""
    return _figure(value, "celsius", reason)


@register.filter
def percent(value: Figure, reason: str = "") -> str:
    """A percentage from 0 to 100."""
    return _figure(value, "percent", reason)


@register.filter
def mhz(value: Figure, reason: str = "") -> str:
    """A clock in MHz."""
    return _figure(value, "mhz", reason)


@register.filter
def count(value: Figure, reason: str = "") -> str:
    """A whole number with thousands separated."""
    return _figure(value, "count", reason)


@register.filter
def latency(value: Figure, reason: str = "") -> str:
    """Milliseconds as ms under a second, then seconds."""
    return _figure(value, "latency", reason)


@register.filter
def duration(value: Figure, reason: str = "") -> str:
    """Seconds as "3 m 12 s"."""
    return missing(reason) if value is None or value == "" else formatting.duration(float(value))


@register.filter
def bare(value: Figure, kind: str) -> str:
    """The number alone, for a column whose header has the unit."""
    return missing() if value is None or value == "" else formatting.number(float(value), kind)


@register.simple_tag(name="time")
def time_element(
    at: datetime | None, *, relative: bool = False, zone: bool = True, seconds: bool = True, reason: str = "never"
) -> SafeString:
    """Return a <time> in the viewer's zone with UTC on hover; with `relative`, how long ago stands beside it."""
    if at is None:
        return missing(reason)
    utc = at.astimezone(UTC)
    element = format_html(
        '<time datetime="{}" title="{} UTC"{}>{}</time>',
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        utc.strftime("%Y-%m-%d %H:%M:%S"),
        "" if zone else SafeString(" data-zoneless"),
        formatting.absolute(at, zone=zone, seconds=seconds),
    )
    if not relative:
        return element
    return format_html('{} <span class="hint nowrap" data-ago>{}</span>', element, formatting.ago(at, clock.now()))


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: object) -> str:
    """Return the present query string with some keys changed; None or "" removes a key."""
    request: HttpRequest = context["request"]
    params = request.GET.copy()
    for key, value in changes.items():
        if value is None or value == "":
            params.pop(key, None)
        else:
            params[key] = str(value)
    return f"?{params.urlencode()}" if params else "?"
