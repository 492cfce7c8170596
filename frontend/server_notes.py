"""Which servers do not report, in words that are the same wherever the fleet is summed up. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.enums import ServerState
from frontend.fleet_rows import FleetRows, ServerRow
from frontend.formatting import listed

NAMED: Final = 2


@dataclass(frozen=True, slots=True)
class ServerNote:
    """One sentence about some servers. names: of all of them, for a hint."""

    tone: str
    sentence: str
    names: str = ""


def server_notes(fleet: FleetRows) -> list[ServerNote]:
    """Return who has never reported, who is silent, joining, degraded or in maintenance; "all report" only when they do."""
    if not fleet.servers:
        return []
    return _unheard(fleet.servers) or [ServerNote("ok", _("all report")), *_degraded(fleet.servers)]


def _unheard(rows: Sequence[ServerRow]) -> list[ServerNote]:
    silent = [row for row in rows if row.server.state == ServerState.NOT_REPORTING]
    joining = [row for row in rows if row.server.state == ServerState.JOINING]
    never = [row for row in rows if not row.has_reported and row not in silent and row not in joining]
    away = [row for row in rows if _is_away(row)]
    found = [
        *_note("warning", silent, _does_not_report),
        *_note("unknown", never, _never_reported),
        *_note("progress", joining, _is_joining),
        *_note("silenced", away, _in_maintenance),
    ]
    return [*found, *_degraded(rows)] if found else []


def _is_away(row: ServerRow) -> bool:
    """Say whether a server in maintenance is not heard: nobody is called, and it does not report."""
    return row.server.state == ServerState.MAINTENANCE and row.has_reported and not row.is_fresh


def _degraded(rows: Sequence[ServerRow]) -> list[ServerNote]:
    return _note("warning", [row for row in rows if row.server.state == ServerState.DEGRADED], _is_degraded)


def _note(tone: str, rows: Sequence[ServerRow], say: Callable[[int], str]) -> list[ServerNote]:
    names = [row.server.name for row in rows]
    return [ServerNote(tone, say(len(names)) % {"names": _few(names)}, listed(names))] if names else []


def _few(names: Sequence[str]) -> str:
    shown, more = listed(names[:NAMED]), len(names) - NAMED
    return _("%(names)s and %(count)s more") % {"names": shown, "count": more} if more > 0 else shown


def _never_reported(count: int) -> str:
    return ngettext("%(names)s has never reported", "%(names)s have never reported", count)


def _does_not_report(count: int) -> str:
    return ngettext("%(names)s does not report", "%(names)s do not report", count)


def _is_joining(count: int) -> str:
    return ngettext("%(names)s is joining", "%(names)s are joining", count)


def _is_degraded(count: int) -> str:
    return ngettext("%(names)s is degraded", "%(names)s are degraded", count)


def _in_maintenance(count: int) -> str:
    return ngettext("%(names)s is in maintenance and silent", "%(names)s are in maintenance and silent", count)
