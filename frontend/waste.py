"""The page of waste: cards that had nothing to do, in words, with what that cost and what would save it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from frontend.formatting import duration, listed, with_unit
from frontend.money import rates_text, sums_text
from monitoring.waste.enums import Ground, Use
from monitoring.waste.money import Avoidable
from monitoring.waste.selectors import Waste, WasteRow

RANGES: Final = {
    "1d": (timedelta(days=1), gettext_lazy("24 hours")),
    "7d": (timedelta(days=7), gettext_lazy("7 days")),
    "30d": (timedelta(days=30), gettext_lazy("30 days")),
}
LISTED: Final = 200
# Shape and colour of a state; the word stands beside it.
TONES: Final = {
    Use.WORKING: "ok",
    Use.STANDBY: "silenced",
    Use.PARKED: "warning",
    Use.IDLE: "warning",
    Use.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One row in words; saving and contract are "" where there is nothing to say."""

    row: WasteRow
    use: str
    tone: str
    ground: str
    quiet: str
    evidence: str
    contract: str
    saving: str


def lines(found: Waste) -> list[Line]:
    """Return the dearest rows in words."""
    return [_line(row) for row in found.rows[:LISTED]]


def tiles(found: Waste) -> dict[str, Any]:
    """Return the figures above the list."""
    running = [row for row in found.rows if row.idle_since is not None]
    return {
        "cost": sums_text(found.totals),
        "avoidable": sums_text(found.avoidable),
        "cards": len(found.rows),
        "running": len(running),
        "without_price": found.without_price,
    }


def _line(row: WasteRow) -> Line:
    use = Use(row.use.use) if row.use else Use.UNKNOWN
    ground = Ground(row.use.ground) if row.use else Ground.NO_READINGS
    return Line(
        row=row,
        use=str(use.label),
        tone=TONES[use],
        ground=str(ground.label),
        quiet=duration(row.quiet_minutes * 60),
        evidence=_evidence(row.evidence),
        contract=_contract(row),
        saving=_saving(row),
    )


def _evidence(seen: Mapping[str, Any]) -> str:
    """Return what was seen while the card was quiet; what was not read is left out."""
    parts = []
    if (most := seen.get("work_percent")) is not None:
        parts.append(_("at most %(percent)s busy") % {"percent": with_unit(most, "percent")})
    if (power := seen.get("power_watts")) is not None:
        limit = seen.get("power_limit_watts")
        drawn = with_unit(power, "watts")
        parts.append(
            _("%(power)s of %(limit)s") % {"power": drawn, "limit": with_unit(limit, "watts")} if limit else drawn
        )
    if (share := seen.get("memory_share")) is not None:
        parts.append(_("%(percent)s of its memory held") % {"percent": with_unit(share * 100, "percent")})
    return listed(parts)


def _contract(row: WasteRow) -> str:
    if row.lease is None:
        return _("Nobody told what its machine costs")
    if row.avoidable == Avoidable.AT_RENEWAL and row.lease.renews_at is not None:
        return _("Paid in advance until %(day)s") % {"day": _day(row.lease.renews_at)}
    return str(Avoidable(row.avoidable).label) if row.avoidable else ""


def _day(at: datetime) -> str:
    return at.strftime("%Y-%m-%d")


def _saving(row: WasteRow) -> str:
    if row.saving is None:
        return ""
    if row.saving.by_stopping:
        return _("%(price)s per hour, stopped") % {"price": rates_text(row.saving.by_stopping)}
    return _("%(price)s per hour, ended") % {"price": rates_text(row.saving.by_ending)} if row.saving.by_ending else ""
