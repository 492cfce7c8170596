"""What a change would do before it is asked for: where replicas would go, what that costs, how long starting takes."""

from collections import Counter
from datetime import datetime
from statistics import median
from typing import Final

from endpoints.costs import HourlyCost, card_rates, cost_of
from endpoints.models import Endpoint, Replica, ReplicaGpu, Revision
from endpoints.services.placing import Placement, candidates

MEASURED: Final = 5


def cards_of_next(*, endpoint: Endpoint, revision: Revision, count: int) -> Counter[int]:
    """Return how many cards of which servers the next `count` replicas would take; fewer when there is no more room.

    By the order of `placing.spot_find`, which looks again when they are placed: others may have taken a card by then.
    """
    way = 1 if Placement.read(endpoint.placement).is_spread else -1
    free = candidates(endpoint, revision)
    taken: Counter[int] = Counter()
    for _replica in range(count):
        fitting = [each for each in free if each.fits(revision.gpus)]
        if not fitting:
            break
        best = min(fitting, key=lambda each: (each.siblings * way, len(each.gpus), each.guests, each.server.pk))
        taken[best.server.pk] += revision.gpus
        best.gpus, best.ports = best.gpus[revision.gpus :], best.ports[1:]
        best.siblings, best.guests = best.siblings + 1, best.guests + 1
    return taken


def cost_of_next(*, endpoint: Endpoint, revision: Revision, count: int, at: datetime) -> tuple[HourlyCost, int]:
    """Return what an hour of the next `count` replicas would cost, and for how many of them there is room now."""
    cards = cards_of_next(endpoint=endpoint, revision=revision, count=count)
    cost = cost_of(cards, card_rates(server_ids=list(cards), at=at))
    room = sum(cards.values()) // revision.gpus if revision.gpus else min(count, _room(endpoint, revision))
    return cost, room


def _room(endpoint: Endpoint, revision: Revision) -> int:
    return sum(each.fits(0) for each in candidates(endpoint, revision))


def cost_of_replicas(*, replica_ids: list[int], at: datetime) -> HourlyCost:
    """Return what an hour of the cards that these replicas hold costs."""
    cards = Counter(ReplicaGpu.objects.filter(replica__in=replica_ids).values_list("replica__server_id", flat=True))
    return cost_of(cards, card_rates(server_ids=list(cards), at=at))


def usual_starts(*, engine: str, model: str, before: datetime | None = None) -> list[Replica]:
    """Return the last replicas of the same engine and model that came to be ready, the newest first; five at most."""
    same = {"revision__spec__model": model} if model else {"revision__spec__model__isnull": True}
    found = Replica.objects.filter(revision__engine=engine, **same).exclude(ready_at=None)
    if before is not None:
        found = found.filter(created_at__lt=before)
    return list(found.order_by("-pk")[:MEASURED])


def usual_start_seconds(*, engine: str, model: str) -> float | None:
    """Return how long such a replica usually takes from its placing to its first answer: the median of the last five."""
    times = [
        (each.ready_at - each.created_at).total_seconds()
        for each in usual_starts(engine=engine, model=model)
        if each.ready_at is not None
    ]
    return median(times) if times else None
