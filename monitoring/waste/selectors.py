"""What idleness cost: card by card, with the evidence, the contract, and what could be saved."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet

from fleet.models import Gpu, Lease, Server
from fleet.providers.facts import Billing
from fleet.selectors.costs import Ledger, lease_ledgers
from monitoring.models import GpuUse, IdleInterval
from monitoring.waste.money import Avoidable, IdleCost, Saving, Stretch, avoidable, idle_cost, saving_per_hour
from panel.core.money import Money, sums


@dataclass(frozen=True, slots=True)
class WasteRow:
    """One card that had nothing to do within the window.

    use: what it does now, None before it was looked at. quiet_minutes: of the window. idle_since: of the interval that is
    open, None when it works again. lease: None when nobody told what its machine costs; then cost is None too, and never 0.
    avoidable, saving: by the lease (`monitoring.waste.money`). evidence: of the newest interval.
    """

    gpu: Gpu
    use: GpuUse | None
    quiet_minutes: int
    idle_since: datetime | None
    evidence: Mapping[str, Any]
    lease: Lease | None
    cost: IdleCost | None
    avoidable: Avoidable | None
    saving: Saving | None


@dataclass(frozen=True, slots=True)
class Waste:
    """The list, dearest first, and its sums by currency: of all rows, and of those that could still be saved."""

    start: datetime
    end: datetime
    rows: list[WasteRow]
    totals: dict[str, Money]
    avoidable: dict[str, Money]
    unknown_card_hours: Decimal
    without_price: int


def waste(*, start: datetime, end: datetime, at: datetime) -> Waste:
    """Return every card with quiet minutes within [start, end), which lies at most a few months back. Six queries."""
    intervals = _intervals(start, end)
    gpus = list(Gpu.objects.filter(pk__in=intervals).select_related("server"))
    leases = _leases({gpu.server_id for gpu in gpus}, start, end)
    book = _Book(
        start=start,
        end=end,
        at=at,
        uses={use.gpu_id: use for use in GpuUse.objects.filter(gpu__in=gpus)},
        intervals=intervals,
        leases=leases,
        ledgers=lease_ledgers(lease_ids=[each.pk for some in leases.values() for each in some], start=start, end=end),
        cards=_cards(gpu.server_id for gpu in gpus),
    )
    rows = [_row(gpu, book) for gpu in gpus]
    rows.sort(key=lambda row: (-_dearest(row), -row.quiet_minutes, row.gpu.pk))
    known = [row for row in rows if row.cost is not None]
    return Waste(
        start,
        end,
        rows,
        totals=sums(money for row in known if row.cost for money in row.cost.totals.values()),
        avoidable=sums(
            money for row in known if row.cost and row.avoidable == Avoidable.NOW for money in row.cost.totals.values()
        ),
        unknown_card_hours=sum((row.cost.unknown_card_hours for row in known if row.cost), Decimal(0)),
        without_price=len(rows) - len(known),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Book:
    """What rows are made of: intervals and uses by card, leases and numbers of cards by server, ledgers by lease."""

    start: datetime
    end: datetime
    at: datetime
    uses: Mapping[int, GpuUse]
    intervals: Mapping[int, Sequence[IdleInterval]]
    leases: Mapping[int, Sequence[Lease]]
    ledgers: Mapping[int, Ledger]
    cards: Mapping[int, int]


def _intervals(start: datetime, end: datetime) -> dict[int, list[IdleInterval]]:
    rows: QuerySet[IdleInterval] = IdleInterval.objects.filter(started_at__lt=end, ended_at__gt=start)
    found: dict[int, list[IdleInterval]] = defaultdict(list)
    for row in rows.order_by("started_at"):
        found[row.gpu_id].append(row)
    return found


def _leases(server_ids: Iterable[int], start: datetime, end: datetime) -> dict[int, list[Lease]]:
    overlapping = Q(ended_at=None) | Q(ended_at__gt=start)
    found: dict[int, list[Lease]] = defaultdict(list)
    for lease in Lease.objects.filter(overlapping, server__in=set(server_ids), requested_at__lt=end).order_by("pk"):
        found[lease.server_id or 0].append(lease)
    return found


def _cards(server_ids: Iterable[int]) -> dict[int, int]:
    whole = Count("gpus", filter=Q(gpus__parent=None, gpus__removed_at=None))
    return dict(Server.objects.filter(pk__in=set(server_ids)).annotate(cards=whole).values_list("pk", "cards"))


def _row(gpu: Gpu, book: _Book) -> WasteRow:
    intervals, leases = book.intervals[gpu.pk], book.leases[gpu.server_id]
    newest, lease = intervals[-1], leases[-1] if leases else None
    return WasteRow(
        gpu=gpu,
        use=book.uses.get(gpu.pk),
        quiet_minutes=_quiet_minutes(intervals, book),
        idle_since=newest.started_at if newest.is_open else None,
        evidence=newest.evidence,
        lease=lease,
        cost=_cost(gpu, leases, book) if leases else None,
        avoidable=avoidable(Billing(lease.billing)) if lease else None,
        saving=_saving(lease, book) if lease else None,
    )


def _cost(gpu: Gpu, leases: Sequence[Lease], book: _Book) -> IdleCost:
    cards = max(book.cards.get(gpu.server_id, 1), 1)
    stretches = [Stretch(row.started_at, row.ended_at, 1, cards) for row in book.intervals[gpu.pk]]
    ledgers = [book.ledgers[lease.pk] for lease in leases]
    return _together(
        [idle_cost(stretches, each.intervals, each.prices, start=book.start, end=book.end) for each in ledgers]
    )


def _saving(lease: Lease, book: _Book) -> Saving:
    return saving_per_hour(
        book.ledgers[lease.pk].prices,
        billing=Billing(lease.billing),
        at=book.at,
        is_stop_saving=lease.is_stop_saving,
    )


def _quiet_minutes(intervals: Sequence[IdleInterval], window: _Book) -> int:
    """Return the quiet minutes within the window; an interval that reaches over its edge counts by its share."""
    total = 0.0
    for row in intervals:
        inside = min(row.ended_at, window.end) - max(row.started_at, window.start)
        total += row.quiet_minutes * (inside / (row.ended_at - row.started_at))
    return round(total)


def _together(costs: Sequence[IdleCost]) -> IdleCost:
    return IdleCost(
        sums(money for each in costs for money in each.totals.values()),
        sum((each.card_hours for each in costs), Decimal(0)),
        sum((each.unknown_card_hours for each in costs), Decimal(0)),
    )


def _dearest(row: WasteRow) -> Decimal:
    """Return the largest amount of a row; currencies are compared as they are, which only orders the list."""
    return max((money.amount for money in row.cost.totals.values()), default=Decimal(0)) if row.cost else Decimal(0)
