"""The log of one start of a replica as a page shows it: lines with when they came and how grave they are."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.translation import gettext as _

from endpoints.models import Replica, ReplicaLog
from endpoints.selectors import replica_log

SHOWN_CHARACTERS: Final = 131_072
# How engines mark lines: words of Python's logging, letters of llama.cpp ("0.05.762 E …") and of glog ("E1201 13:30:00 …").
# static/js/log_lines.js reads lines that come live by the same patterns.
_ERROR: Final = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|Traceback)\b|\b\w*(?:Error|Exception)\b: |^[\d.]+ E |^E\d{4} |\b\w+Error\b:?$"
)
_WARNING: Final = re.compile(r"\b(?:WARN|WARNING)\b|\b\w*Warning: |^[\d.]+ W |^W\d{4} ")
LEVELS: Final = ("warning", "error")


def level_of(line: str, before: str = "") -> str:
    """Return "error", "warning" or "". before: the level of the line before, which an indented line goes on with. Pure."""
    if line[:1] in {" ", "\t"}:
        return before
    if _ERROR.search(line):
        return "error"
    return "warning" if _WARNING.search(line) else ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. at: when the panel got it; None for a remark of the panel's own."""

    text: str
    at: datetime | None
    level: str = ""


@dataclass(frozen=True, slots=True)
class LogView:
    """The log of one start of a replica. shown: the offset of the last piece shown; is_newest: whether more may come."""

    replica: Replica
    generation: int
    generations: Sequence[int]
    lines: Sequence[LogLine]
    shown: int
    last_at: datetime | None
    is_cut: bool
    search: str = ""
    level: str = ""

    @property
    def is_newest(self) -> bool:
        """Say whether this is the present start."""
        return not self.generations or self.generation == self.generations[0]

    @property
    def is_filtered(self) -> bool:
        """Say whether lines may be hidden."""
        return bool(self.search or self.level)


def log_of(replica: Replica, *, generation: str = "", search: str = "", level: str = "") -> LogView:
    """Return the end of a log. search: only lines with this text; level: only warnings and errors, or errors. Two queries."""
    kept = ReplicaLog.objects.filter(replica=replica)
    generations = sorted(set(kept.values_list("generation", flat=True)), reverse=True)
    wanted = int(generation) if generation.isdecimal() and len(generation) < 10 else None
    chosen = wanted if wanted in generations else (generations[0] if generations else replica.generation)
    pieces = list(replica_log(replica=replica.pk, generation=chosen))
    ends: list[ReplicaLog] = []
    size = 0
    for piece in reversed(pieces):
        size += len(piece.text)
        if size > SHOWN_CHARACTERS and ends:
            break
        ends.append(piece)
    text, asked = search.strip()[:200], level if level in LEVELS else ""
    last_at = pieces[-1].received_at if pieces else None
    shown = pieces[-1].offset if pieces else -1
    found = [line for line in _lines(reversed(ends)) if _passes(line, text.casefold(), asked)]
    return LogView(replica, chosen, generations, found, shown, last_at, len(ends) < len(pieces), text, asked)


def _lines(pieces: Iterable[ReplicaLog]) -> Iterable[LogLine]:
    level = ""
    for piece in pieces:
        if piece.skipped_bytes:
            yield LogLine(_("… %(bytes)s bytes were not kept …") % {"bytes": piece.skipped_bytes}, None)
        for text in piece.text.splitlines():
            level = level_of(text, level)
            yield LogLine(text, piece.received_at, level)


def _passes(line: LogLine, text: str, level: str) -> bool:
    if level and (line.level != "error" if level == "error" else not line.level):
        return False
    return not text or text in line.text.casefold()
