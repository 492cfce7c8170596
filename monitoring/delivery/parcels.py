"""What goes out next to one recipient, from what is queued for them. Pure: rows in, a decision out.

A topic's queued rows become one part: an opening that was never delivered and its end are one message, and an end alone is
told to nobody. Parts that hang on one server travel together; more than ten within five minutes travel as one digest; what
quiet hours held back comes as one. What may have arrived already is sent again exactly as it was, before anything else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from monitoring.delivery.enums import NoticeKind
from monitoring.delivery.models import Notification
from monitoring.notifiers.message import Part

DAY: Final = timedelta(hours=24)
STORM: Final = timedelta(minutes=5)
STORM_COUNT: Final = 10
MOST_PER_DAY: Final = 4
MOST_PARTS: Final = 50
RANK: Final = {"info": 0, "warning": 1, "critical": 2}
UNCAPPED: Final = frozenset({"resolved", "test", "digest"})


@dataclass(frozen=True, slots=True)
class Opening:
    """How this recipient first heard of a topic. is_over: the last they heard was its end, so that it would begin anew."""

    facts: Mapping[str, Any]
    severity: str
    message_id: str
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """What this recipient was told before.

    openings: by topic. capped: times of the messages of the last 24 h by cap key. sent: times of all messages of the last
    five minutes, oldest first.
    """

    openings: Mapping[str, Opening] = field(default_factory=dict)
    capped: Mapping[str, Sequence[datetime]] = field(default_factory=dict)
    sent: Sequence[datetime] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """The queued rows of one topic and the part that they become."""

    rows: tuple[Notification, ...]
    part: Part

    @property
    def order(self) -> tuple[int, int]:
        """Worst first, then oldest."""
        return (-RANK.get(self.part.severity, 0), self.rows[0].pk)


@dataclass(frozen=True, slots=True)
class Parcel:
    """One message: its shares in order; the first row of the first share leads."""

    shares: tuple[Share, ...]

    @property
    def rows(self) -> list[Notification]:
        """All rows that it delivers, the leader first."""
        return [row for share in self.shares for row in share.rows]

    @property
    def parts(self) -> list[Part]:
        """What it tells."""
        return [share.part for share in self.shares]


@dataclass(frozen=True, slots=True)
class Decision:
    """parcel: what goes out now, if anything. held: rows and until when, with what for. unowed: ends that nobody is owed."""

    parcel: Parcel | None = None
    held: tuple[tuple[tuple[Notification, ...], datetime, str], ...] = ()
    unowed: tuple[Notification, ...] = ()


def decide(rows: Iterable[Notification], past: Past, *, at: datetime, is_for_people: bool = True) -> Decision:
    """Say what goes out next of one recipient's queued rows. is_for_people: programs get each thing by itself, uncapped."""
    rows = sorted(rows, key=lambda row: (row.topic, row.seq))
    again = _sent_before(rows, past, at)
    if again is not None:
        return Decision(again)
    unowed: list[Notification] = []
    held: list[tuple[tuple[Notification, ...], datetime, str]] = []
    due: list[Share] = []
    waiting: list[Share] = []
    for share in _shares(_free(rows, at), past, unowed):
        free_at = _cap_ends(share, past, at) if is_for_people else None
        if free_at is not None:
            held.append((share.rows, free_at, "cap"))
        elif any(row.retry_at is not None and row.retry_at > at for row in share.rows):
            continue
        elif min(row.not_before for row in share.rows) <= at:
            due.append(share)
        else:
            waiting.append(share)
    due.sort(key=lambda share: share.order)
    if is_for_people and due and not _is_test(due[0]):
        storm_ends = _storm_ends(past, at)
        if storm_ends is not None:
            held += [(share.rows, storm_ends, "storm") for share in due if not _is_test(share)]
            due = [share for share in due if _is_test(share)]
    parcel = _parcel(due, waiting, past, at, is_for_people=is_for_people) if due else None
    return Decision(parcel, tuple(held), tuple(unowed))


def _is_test(share: Share) -> bool:
    return share.part.kind == NoticeKind.TEST


def _is_claimed(row: Notification, at: datetime) -> bool:
    return row.claim is not None and row.claimed_until is not None and row.claimed_until > at


def _leader_id(row: Notification) -> int:
    return row.leader_id or row.pk


def _sent_before(rows: Sequence[Notification], past: Past, at: datetime) -> Parcel | None:
    """Return a message that may have arrived already, with exactly the rows that it had; the oldest first."""
    uncertain = [row for row in rows if row.is_uncertain]
    for leader_id in sorted({_leader_id(row) for row in uncertain}):
        members = [row for row in uncertain if _leader_id(row) == leader_id]
        if any(_is_claimed(row, at) or (row.retry_at is not None and row.retry_at > at) for row in members):
            continue
        return Parcel(tuple(sorted(_shares(members, past, None), key=lambda share: share.order)))
    return None


def _free(rows: Sequence[Notification], at: datetime) -> list[Notification]:
    """Return the rows of topics of which nothing is under way, so that order is kept within each."""
    busy = {row.topic for row in rows if row.is_uncertain or _is_claimed(row, at)}
    return [row for row in rows if row.topic not in busy]


def _shares(rows: Sequence[Notification], past: Past, unowed: list[Notification] | None) -> list[Share]:
    """Return the share of each topic; ends that nobody is owed go to `unowed`, or are told all the same when it is None."""
    by_topic: dict[str, list[Notification]] = {}
    for row in rows:
        by_topic.setdefault(row.topic, []).append(row)
    shares = []
    for topic, its_rows in by_topic.items():
        opening = past.openings.get(topic)
        is_begun = opening is not None and not opening.is_over
        if unowed is not None and not is_begun and all(row.kind == NoticeKind.RESOLVED for row in its_rows):
            unowed += its_rows
            continue
        shares.append(Share(tuple(its_rows), _part(its_rows, opening)))
    return shares


def _part(rows: Sequence[Notification], opening: Opening | None) -> Part:
    first, last = rows[0], rows[-1]
    kind, severity, facts = str(last.kind), str(last.severity), dict(last.facts)
    begun = next((row for row in rows if row.kind != NoticeKind.RESOLVED), None)
    is_begun = opening is not None and not opening.is_over
    if not is_begun and last.kind == NoticeKind.RESOLVED and begun is not None:
        kind, severity, facts = "recovered", str(begun.severity), {**begun.facts, **last.facts}
    elif not is_begun and last.kind in {NoticeKind.UPDATE, NoticeKind.REMINDER}:
        kind, facts = "opening", {**first.facts, **last.facts}
    elif last.kind == NoticeKind.REMINDER and any(row.kind == NoticeKind.UPDATE for row in rows):
        kind = "update"
    return Part(
        topic=last.topic,
        seq=last.seq,
        kind=kind,
        severity=severity,
        facts=facts,
        created_at=first.created_at,
        subject_kind=last.subject_kind,
        subject_id=last.subject_id,
        opening_facts=opening.facts if opening else None,
        opening_severity=opening.severity if opening else "",
    )


def _cap_ends(share: Share, past: Past, at: datetime) -> datetime | None:
    """Return when its cap lets it through, or None when it does now. An opening leaves room for its end."""
    if share.part.kind in UNCAPPED:
        return None
    room = MOST_PER_DAY - (1 if share.part.kind == "recovered" else 2)
    times = sorted(moment for moment in past.capped.get(share.rows[-1].cap_key, ()) if moment > at - DAY)
    return times[len(times) - room - 1] + DAY if len(times) > room else None


def _storm_ends(past: Past, at: datetime) -> datetime | None:
    recent = sorted(moment for moment in past.sent if moment > at - STORM)
    return recent[len(recent) - STORM_COUNT] + STORM if len(recent) >= STORM_COUNT else None


def _parcel(due: Sequence[Share], waiting: Sequence[Share], past: Past, at: datetime, *, is_for_people: bool) -> Parcel:
    first = due[0]
    if not is_for_people or _is_test(first):
        return Parcel((first,))
    others = [share for share in due if not _is_test(share)]
    recent = sum(moment > at - STORM for moment in past.sent)
    was_stormy = any(row.held_for == "storm" for row in first.rows)
    if len(others) > STORM_COUNT - recent or was_stormy:
        return Parcel(tuple(others[:MOST_PARTS]))
    if all(row.held_for == "quiet" for row in first.rows):
        return Parcel(
            tuple(share for share in others if all(row.held_for == "quiet" for row in share.rows))[:MOST_PARTS]
        )
    host_id = first.rows[-1].host_id
    if host_id is None:
        return Parcel((first,))
    grouped = [share for share in waiting if all(row.held_for == "group" for row in share.rows)]
    on_host = [share for share in (*others, *grouped) if share.rows[-1].host_id == host_id]
    return Parcel(tuple(sorted(on_host, key=lambda share: share.order)[:MOST_PARTS]))
