"""Whether a model fits, on each server's GPUs and on each offer, and what an hour of a replica costs there."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from endpoints.costs import card_rates
from endpoints.models import ReplicaGpu
from endpoints.sizing.fit import Demand, Fit, OfferFit, best_fit, cheapest_first, offer_fit
from fleet.enums import GpuState
from fleet.models import Gpu, Offer
from fleet.selectors.leasing import offer_list
from panel.core.money import Money

OFFERS_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class FitRow:
    """One kind of card of a server, or one offer.

    cards: so many are there; free: of them held by no replica, None of an offer. memory_bytes: of one. rate: of one replica
    and hour, by currency; None: not known. href_id: of the server or offer.
    """

    name: str
    gpu: str
    cards: int
    free: int | None
    memory_bytes: int | None
    fit: Fit
    rate: Mapping[str, Money] | None
    href_id: int

    @property
    def used_percent(self) -> int | None:
        """Return how much of a card's memory is needed, in percent; None when it is not known."""
        if self.fit.need is None or not self.memory_bytes:
            return None
        return round(100 * self.fit.need.total_bytes / self.memory_bytes)


R = TypeVar("R", bound=FitRow)


@dataclass(frozen=True, slots=True)
class Sizing(Generic[R]):
    """Verdicts for everything that is there and that could be rented. left_out: offers that are dearer than those listed."""

    servers: Sequence[R]
    offers: Sequence[R]
    left_out: int

    @property
    def best(self) -> Fit | None:
        """Return the best way on what is registered, else on offers; None when it fits nowhere."""
        good = [row.fit for row in (*self.servers, *self.offers) if row.fit.verdict in {"fits", "tight"}]
        return min(good, key=lambda fit: (fit.verdict != "fits", fit.degree), default=None)


def sizing_of(demand: Demand, at: datetime, make: Callable[..., R]) -> Sizing[R]:
    """Return the verdicts; make: the kind of row, FitRow or one that adds to it. Seven queries."""
    offers = _offer_rows(demand, make)
    return Sizing(_server_rows(demand, at, make), offers[:OFFERS_SHOWN], max(len(offers) - OFFERS_SHOWN, 0))


def _server_rows(demand: Demand, at: datetime, make: Callable[..., R]) -> list[R]:
    """Return the verdict for each server and kind of card there."""
    held = set(ReplicaGpu.objects.values_list("gpu_id", flat=True))
    whole = Gpu.objects.filter(removed_at=None, parent=None, state=GpuState.OK, server__retired_at=None)
    groups: defaultdict[tuple[str, int, str, int | None], list[Gpu]] = defaultdict(list)
    for gpu in whole.select_related("server").order_by("server__name", "index"):
        groups[gpu.server.name, gpu.server_id, gpu.name, gpu.memory_total_bytes].append(gpu)
    rates = card_rates(server_ids={key[1] for key in groups}, at=at)
    return [make(**_server_row(demand, key, cards, held, rates[key[1]])) for key, cards in groups.items()]


def _server_row(
    demand: Demand,
    key: tuple[str, int, str, int | None],
    cards: list[Gpu],
    held: set[int],
    rate: dict[str, Money] | None,
) -> dict[str, object]:
    found = best_fit(demand, memory_bytes=key[3], gpu_count=len(cards))
    hour = {code: money * found.degree for code, money in rate.items()} if rate else None
    return {
        "name": key[0], "gpu": key[2], "cards": len(cards), "free": sum(card.pk not in held for card in cards),
        "memory_bytes": key[3], "fit": found, "rate": hour, "href_id": key[1],
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Offered:
    """An offer as sizing reads it."""

    offer: Offer

    @property
    def gpu_count(self) -> int:
        return self.offer.gpu_count

    @property
    def gpu_memory_bytes(self) -> int | None:
        return self.offer.gpu_memory_bytes

    @property
    def price_per_hour(self) -> Money | None:
        price = self.offer.price_per_hour
        return Money(price, self.offer.currency) if price is not None else None


def _offer_rows(demand: Demand, make: Callable[..., R]) -> list[R]:
    """Return the verdict for each offer on which the model fits, the cheapest replica first."""
    offers = [offer for offer in offer_list() if offer.gpu_count > 0 and offer.stock != "none"]
    found = [(offer_fit(demand, _Offered(offer)), offer) for offer in offers]
    by_fit = {id(fit): offer for fit, offer in found}
    return [
        make(**_offer_row(fit, by_fit[id(fit)])) for fit in cheapest_first(fit for fit, _offer in found) if fit.replicas
    ]


def _offer_row(found: OfferFit, offer: Offer) -> dict[str, object]:
    price = found.price_per_replica_hour
    return {
        "name": offer.account.name, "gpu": offer.gpu_model or offer.raw_gpu, "cards": offer.gpu_count, "free": None,
        "memory_bytes": offer.gpu_memory_bytes, "fit": found.fit, "rate": {price.currency: price} if price else None,
        "href_id": offer.pk,
    }  # fmt: skip
