"""A finished acceptance check as its page shows it: groups of rows, and how everything was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from fleet.agent.acceptance.found import CardFound, Found
from fleet.leasing.acceptance import Report
from fleet.leasing.acceptance_lines import Line, Verdict
from frontend import formatting
from frontend.acceptance.words import (
    LABELS,
    OVERALL,
    SOURCES,
    VERDICTS,
    reason_text,
    tolerance_text,
    value_text,
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line in words; `verdict` is its code, for the tone."""

    label: str
    ordered: str
    found: str
    tolerance: str
    source: str
    verdict: str
    verdict_words: str
    reason: str


@dataclass(frozen=True, slots=True)
class Group:
    """The machine, or one card."""

    title: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Shown:
    """A report in words."""

    verdict: str
    verdict_words: str
    sentence: str
    counts: Sequence[tuple[str, str, int]]
    groups: Sequence[Group]
    notes: Sequence[str]


def show(report: Report, found: Found) -> Shown:
    """Return the report as people read it: failures are in it wherever their subject stands, nothing is left out."""
    subjects = list(dict.fromkeys(line.subject for line in report.lines))
    groups = [
        Group(_title(subject), [_row(line) for line in report.lines if line.subject == subject]) for subject in subjects
    ]
    return Shown(
        str(report.verdict),
        str(VERDICTS[report.verdict]),
        str(OVERALL[report.verdict]),
        [
            (str(verdict), str(VERDICTS[verdict]), report.counts[verdict])
            for verdict in Verdict
            if report.counts[verdict]
        ],
        groups,
        list(_notes(found)),
    )


def _title(subject: int | None) -> str:
    return _("Machine") if subject is None else _("GPU %(index)s") % {"index": subject}


def _row(line: Line) -> Row:
    return Row(
        label=str(LABELS.get(line.code, line.code)),
        ordered=value_text(line, line.ordered),
        found=value_text(line, line.found),
        tolerance=tolerance_text(line),
        source=str(SOURCES[line.source]) if line.source is not None else "",
        verdict=str(line.verdict),
        verdict_words=str(VERDICTS[line.verdict]),
        reason=reason_text(line.reason) if line.reason else "",
    )


def _notes(found: Found) -> Sequence[str]:
    notes = [
        _disk_note(found),
        _copy_note(found.cards),
        _link_note(found.cards),
        *_route_notes(found),
        _clock_note(found),
    ]
    return [note for note in notes if note]


def _disk_note(found: Found) -> str:
    disk = found.disk
    if disk is None or disk.bytes_read is None:
        return ""
    methods = {
        "direct": _("read past the cache (O_DIRECT)"),
        "dropped": _("read after its pages were dropped from the cache"),
        "cached": _("read from memory, which proves nothing about a disk"),
    }
    return _("Disk: a file of %(size)s in %(directory)s (%(filesystem)s), written through and %(method)s.") % {
        "size": formatting.with_unit(disk.bytes_read, "gib"),
        "directory": disk.directory,
        "filesystem": disk.filesystem or "?",
        "method": methods.get(disk.method, disk.method),
    }


def _copy_note(cards: Sequence[CardFound]) -> str:
    copies = [card.copy for card in cards if card.copy is not None]
    if not copies:
        return ""
    return _(
        "Copies: 64 MiB of pinned memory to the card, again and again for %(seconds).1f s a card, %(rounds)d rounds."
    ) % {
        "seconds": min(copy.seconds for copy in copies),
        "rounds": min(copy.rounds for copy in copies),
    }


def _link_note(cards: Sequence[CardFound]) -> str:
    if not cards or all(card.is_link_loaded for card in cards):
        return _("PCIe was read while a copy ran.") if cards else ""
    return _("PCIe was read at rest on some cards: links rest at a low generation, their width stays.")


def _route_notes(found: Found) -> list[str]:
    sentence = _("The way to %(host)s:%(port)s: round trip is the median of five TCP connections.")
    return [
        sentence % {"host": route.host, "port": route.port or ""}
        for route in (found.panel, found.target)
        if route is not None and route.round_trip_ms is not None
    ]


def _clock_note(found: Found) -> str:
    if found.clock_skew_ms is None:
        return ""
    ahead = found.clock_skew_ms >= 0
    words = {"skew": f"{abs(found.clock_skew_ms):,.0f}", "error": f"{found.clock_skew_error_ms or 0:,.0f}"}
    if ahead:
        return _("Clock: %(skew)s ms ahead of the panel’s, known to within %(error)s ms.") % words
    return _("Clock: %(skew)s ms behind the panel’s, known to within %(error)s ms.") % words
