"""What the cards that replicas hold cost an hour: a lease's rate, shared by the whole cards of its machine."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count

from endpoints.models import ReplicaGpu
from fleet.models import Gpu, Lease
from fleet.selectors.costs import lease_rates
from panel.core.money import Money, sums


@dataclass(frozen=True, slots=True)
class HourlyCost:
    """An hour of some cards. known: by currency, never added; unknown: cards whose price nobody told; gpus: cards in all."""

    gpus: int = 0
    known: Mapping[str, Money] = field(default_factory=dict)
    unknown: int = 0

    def plus(self, other: "HourlyCost") -> "HourlyCost":
        """Return both together."""
        known = sums([*self.known.values(), *other.known.values()])
        return HourlyCost(self.gpus + other.gpus, known, self.unknown + other.unknown)


def card_rates(*, server_ids: Collection[int], at: datetime) -> dict[int, dict[str, Money] | None]:
    """Return what an hour of one card of each server costs, by currency; None when not known. Four queries.

    A machine without a lease is somebody's own: what it costs is not known, and not zero.
    """
    leases = list(Lease.objects.filter(server__in=server_ids, ended_at=None).order_by("pk"))
    rates = lease_rates(leases=leases, at=at)
    whole = Gpu.objects.filter(server__in=server_ids, removed_at=None, parent=None).values("server_id")
    counts = {row["server_id"]: row["cards"] for row in whole.annotate(cards=Count("pk"))}
    by_server: defaultdict[int, list[dict[str, Money] | None]] = defaultdict(list)
    for lease in leases:
        if lease.server_id is not None:
            by_server[lease.server_id].append(rates[lease.pk])
    return {pk: _share(by_server[pk], counts.get(pk, 0)) for pk in server_ids}


def _share(rates: list[dict[str, Money] | None], cards: int) -> dict[str, Money] | None:
    known = [rate for rate in rates if rate]
    if not known or len(known) < len(rates) or cards == 0:
        return None
    return {code: money / cards for code, money in sums(each for rate in known for each in rate.values()).items()}


def cost_of(cards: Mapping[int, int], rates: Mapping[int, dict[str, Money] | None]) -> HourlyCost:
    """Return an hour of cards. cards: how many by server."""
    amounts: list[Money] = []
    unknown = 0
    for server_id, count in cards.items():
        rate = rates.get(server_id)
        if rate is None:
            unknown += count
        else:
            amounts += [money * count for money in rate.values()]
    return HourlyCost(sum(cards.values()), sums(amounts), unknown)


def endpoint_costs(*, endpoint_ids: Collection[int], at: datetime) -> dict[int, HourlyCost]:
    """Return what an hour of the cards that each endpoint's replicas hold costs. Five queries."""
    held: defaultdict[int, Counter[int]] = defaultdict(Counter)
    rows = ReplicaGpu.objects.filter(replica__endpoint__in=endpoint_ids)
    for endpoint_id, server_id in rows.values_list("replica__endpoint_id", "replica__server_id"):
        held[endpoint_id][server_id] += 1
    rates = card_rates(server_ids={pk for counts in held.values() for pk in counts}, at=at)
    return {pk: cost_of(held[pk], rates) for pk in endpoint_ids}
