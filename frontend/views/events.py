"""The Events page: the stream, how many rows are newer, and the CSV."""

from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from frontend.access import PageRequest, page
from frontend.csv_export import csv_response
from frontend.events.cursor import Cursor
from frontend.events.filters import FAMILIES, PERIODS, StreamFilter, read_filter
from frontend.events.rows import row_of
from frontend.events.stream import NEW_ROWS_COUNTED, new_rows, stream_all, stream_page
from panel.accounts.capabilities import Capability, has_capability, least_role
from panel.core.clock import now
from panel.core.enums import Severity

CSV_ROWS: Final = 10_000


def _filter(request: PageRequest) -> StreamFilter:
    return read_filter(request.GET, sees_audit=has_capability(request.user.role, Capability.AUDIT_VIEW))


def _choices(wanted: StreamFilter) -> dict[str, Any]:
    kinds: list[tuple[str, Any]] = list(FAMILIES.items())
    if wanted.kind and wanted.kind not in FAMILIES:
        kinds.append((wanted.kind, wanted.kind))
    return {
        "kinds": kinds,
        "severities": Severity.choices,
        "periods": [(key, words) for key, (words, _length) in PERIODS.items()],
    }


@page(Capability.EVENTS_VIEW)
def events(request: PageRequest) -> HttpResponse:
    """Show one page of the stream; all of its state is in the address."""
    wanted = _filter(request)
    before, after = (Cursor.parse(request.GET.get(key, "")) for key in ("before", "after"))
    shown = stream_page(wanted, before=before, after=None if before else after)
    sees_users = has_capability(request.user.role, Capability.USERS_MANAGE)
    rows = [row_of(entry, sees_users=sees_users) for entry in shown.entries]
    sees_audit = has_capability(request.user.role, Capability.AUDIT_VIEW)
    context = {
        "title": _("Events"),
        "nav": "events",
        "rows": rows,
        "page": shown,
        "newest": rows[0].cursor if rows and before is None and shown.newer is None else "",
        "wanted": wanted,
        "sees_audit": sees_audit,
        "audit_role": least_role(Capability.AUDIT_VIEW).label,
        "csv_rows": CSV_ROWS,
        **_choices(wanted),
    }
    return render(request, "events/page.html", context)


@page(Capability.EVENTS_VIEW)
def events_new(request: PageRequest) -> HttpResponse:
    """Answer the line above the table: how many rows have come since the page was made."""
    since = Cursor.parse(request.GET.get("since", ""))
    count = new_rows(_filter(request), after=since) if since is not None else 0
    context = {"count": count, "is_bound": count >= NEW_ROWS_COUNTED, "since": since}
    return render(request, "events/new.html", context)


@page(Capability.EVENTS_VIEW)
def events_csv(request: PageRequest) -> HttpResponse:
    """Answer the rows that the filters let through, the newest ten thousand of them."""
    entries = stream_all(_filter(request), limit=CSV_ROWS)
    header = [
        "time_utc",
        "source",
        "kind",
        "severity",
        "what",
        "object_kind",
        "object",
        "who",
        "who_kind",
        "address",
        "reason",
        "details",
    ]
    rows = (
        [
            row.at.isoformat(),
            row.source,
            row.kind,
            row.severity,
            row.sentence,
            row.object_kind,
            row.object_name,
            row.actor,
            row.actor_kind,
            row.address,
            row.reason,
            "; ".join(f"{change.name}: {change.before or ''} → {change.after or ''}" for change in row.changes),
        ]
        for row in (row_of(entry, sees_users=False) for entry in entries)
    )
    return csv_response(name=f"fleetdeck-events-{now():%Y%m%d-%H%M}.csv", header=header, rows=rows)
