"""Reading the merged stream: two indexed queries a page, whatever its length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Final

from django.db.models import Q, QuerySet

from frontend.events.cursor import RANKS, Cursor
from frontend.events.filters import Source, StreamFilter
from panel.accounts.models import AuditEntry
from panel.accounts.selectors.audit import audit_list, event_list
from panel.core.models import Event

PAGE_ROWS: Final = 50
NEW_ROWS_COUNTED: Final = 100
# The one kind of event that somebody stands behind.
OPERATION_ENDED: Final = "operation.ended"

Entry = Event | AuditEntry


@dataclass(frozen=True, slots=True)
class StreamPage:
    """Rows, newest first, and where the neighbours begin."""

    entries: Sequence[Entry]
    older: Cursor | None
    newer: Cursor | None


def cursor_of(entry: Entry) -> Cursor:
    """Return the place of a row."""
    return Cursor(at=entry.at, rank=RANKS["event" if isinstance(entry, Event) else "audit"], id=entry.pk)


def _events(wanted: StreamFilter) -> QuerySet[Event]:
    """Return events; those of a server include those of its cards."""
    is_server = wanted.subject_kind == "server"
    rows = event_list(
        kind=wanted.kind,
        severity=wanted.severity,
        subject_kind="" if is_server else wanted.subject_kind,
        subject_id=None if is_server else wanted.subject_id,
        server_id=wanted.subject_id if is_server else None,
        start=wanted.start,
        end=wanted.end,
        search=wanted.search,
    )
    return rows.filter(kind=OPERATION_ENDED, data__asked_by__icontains=wanted.actor) if wanted.actor else rows


def _audit(wanted: StreamFilter) -> QuerySet[AuditEntry]:
    return audit_list(
        actor=wanted.actor,
        action=wanted.kind,
        target_kind=wanted.subject_kind,
        target_id=wanted.subject_id,
        start=wanted.start,
        end=wanted.end,
        search=wanted.search,
    )


def _sources(wanted: StreamFilter) -> list[tuple[Source, QuerySet[Any]]]:
    both: list[tuple[Source, QuerySet[Any]]] = [("event", _events(wanted)), ("audit", _audit(wanted))]
    return [(source, rows) for source, rows in both if source in wanted.sources]


def _rows(
    wanted: StreamFilter, limit: int, *, before: Cursor | None = None, after: Cursor | None = None
) -> list[Entry]:
    """Return up to `limit` rows: newest first, older than `before`; or oldest first, newer than `after`."""
    found: list[Sequence[Entry]] = []
    for source, queryset in _sources(wanted):
        condition = Q()
        if before is not None:
            condition = before.older(RANKS[source])
        elif after is not None:
            condition = after.newer(RANKS[source])
        rows = queryset.filter(condition)
        found.append(list((rows if after is None else rows.order_by("at", "id"))[:limit]))
    return list(merge(*found, key=cursor_of, reverse=after is None))[:limit]


def stream_page(wanted: StreamFilter, *, before: Cursor | None = None, after: Cursor | None = None) -> StreamPage:
    """Return one page: the newest, that before a row, or that after one."""
    rows = _rows(wanted, PAGE_ROWS + 1, before=before, after=after)
    has_more, shown = len(rows) > PAGE_ROWS, rows[:PAGE_ROWS]
    if after is not None:
        shown.reverse()
    if not shown:
        return StreamPage([], None, None)
    older = cursor_of(shown[-1]) if has_more or after is not None else None
    newer = cursor_of(shown[0]) if before is not None or (after is not None and has_more) else None
    return StreamPage(shown, older, newer)


def new_rows(wanted: StreamFilter, *, after: Cursor) -> int:
    """Return how many rows are newer than one, counted to a bound."""
    return len(_rows(wanted, NEW_ROWS_COUNTED, after=after))


def stream_all(wanted: StreamFilter, *, limit: int) -> Iterator[Entry]:
    """Give up to `limit` rows, newest first, a thousand at a time."""
    before: Cursor | None = None
    while limit > 0:
        rows = _rows(wanted, min(1_000, limit), before=before)
        yield from rows
        if len(rows) < min(1_000, limit):
            return
        limit -= len(rows)
        before = cursor_of(rows[-1])
