"""Text that others gave: made harmless, cut by bytes, its times put into a zone."""

import re
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

# Control characters, line ends among them, and those that turn the direction of writing or hide.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]+")
_TIME: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})(?!\d)")
ELLIPSIS: Final = "…"
LONGEST_LINE: Final = 2_000


def one_line(text: str, *, limit: int = LONGEST_LINE) -> str:
    """Return the text on one line of at most `limit` characters, without control characters."""
    flat = _CONTROL.sub(" ", text).strip()
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + ELLIPSIS


def cut_bytes(text: str, limit: int) -> str:
    """Return the text in at most `limit` bytes of UTF-8, with an ellipsis where it was cut, never within a character."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    room = max(0, limit - len(ELLIPSIS.encode()))
    return raw[:room].decode(errors="ignore").rstrip() + (ELLIPSIS if limit >= len(ELLIPSIS.encode()) else "")


def local_time(at: datetime, zone: ZoneInfo) -> str:
    """Return a time in a zone with its offset: 2026-03-10 22:02:31 +08:00."""
    local = at.astimezone(zone)
    offset = local.strftime("%z")
    return f"{local:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:5]}"


def localise(text: str, zone: ZoneInfo) -> str:
    """Return the text with every ISO 8601 time that has an offset written in the zone."""

    def shown(match: re.Match[str]) -> str:
        try:
            return local_time(datetime.fromisoformat(match[0]), zone)
        except (ValueError, OverflowError):
            return match[0]

    return _TIME.sub(shown, text)


def without_mentions(text: str) -> str:
    """Return the text in which no `@name` calls anybody: a space of no width stands behind each @."""
    return text.replace("@", "@\u200b")
