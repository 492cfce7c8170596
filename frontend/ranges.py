"""The stretch of time that a page shows, from its address: `?range=6h`, or `?from=…&to=…`; 15 minutes unless said."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

RANGES: Final = {
    "15m": (timedelta(minutes=15), gettext_lazy("15 min")),
    "1h": (timedelta(hours=1), gettext_lazy("1 h")),
    "6h": (timedelta(hours=6), gettext_lazy("6 h")),
    "24h": (timedelta(hours=24), gettext_lazy("24 h")),
    "7d": (timedelta(days=7), gettext_lazy("7 d")),
    "30d": (timedelta(days=30), gettext_lazy("30 d")),
}
DEFAULT_RANGE: Final = "15m"
SHORTEST: Final = timedelta(seconds=10)
LONGEST: Final = timedelta(days=731)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """start and end are aware. key: one of RANGES, or "custom". is_live: it ends now and goes on."""

    key: str
    start: datetime
    end: datetime

    @property
    def is_live(self) -> bool:
        """Say whether the range moves with the clock."""
        return self.key != "custom"

    @property
    def words(self) -> str:
        """Return the range as it stands in a sentence."""
        if self.is_live:
            return _("the last %(range)s") % {"range": RANGES[self.key][1]}
        return _("the chosen time")

    @property
    def query(self) -> str:
        """Return the query that opens the same range again."""
        if self.is_live:
            return urlencode({"range": self.key})
        return urlencode({"from": self.start.isoformat(), "to": self.end.isoformat()})

    def choices(self) -> list[dict[str, Any]]:
        """Return the buttons: each named range with its query and whether it is on."""
        return [
            {"key": key, "label": label, "query": urlencode({"range": key}), "current": key == self.key}
            for key, (_length, label) in RANGES.items()
        ]


def moment(text: str) -> datetime | None:
    """Return a time of an address: ISO 8601, Unix seconds, or a wall-clock time in the viewer's zone; None if neither."""
    try:
        return datetime.fromtimestamp(float(text), tz=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    try:
        found = datetime.fromisoformat(text.replace(" ", "+") if text.count(" ") == 1 and "T" in text else text)
    except ValueError:
        return None
    try:
        return found if timezone.is_aware(found) else timezone.make_aware(found)
    except (ValueError, OverflowError):
        return None


def time_range(query: Mapping[str, str], *, now: datetime) -> TimeRange:
    """Return the range that an address asks for; one that makes no sense is the default, never an error."""
    start, end = moment(query.get("from", "")), moment(query.get("to", ""))
    if start is not None:
        end = min(end or now, now)
        if SHORTEST <= end - start <= LONGEST:
            return TimeRange("custom", start, end)
    key = query.get("range", DEFAULT_RANGE)
    if key not in RANGES:
        key = DEFAULT_RANGE
    return TimeRange(key, now - RANGES[key][0], now)
