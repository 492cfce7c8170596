"""Where a replica goes: servers that may take one, free cards, a free port; and how many more would fit."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from django.db import connection
from django.utils.translation import gettext as _

from endpoints.enums import RuntimeChoice
from endpoints.models import Endpoint, Replica, ReplicaGpu, Revision, ServingHost
from fleet.agent.wire import UNIDENTIFIED
from fleet.enums import GpuState, ServerState
from fleet.models import Gpu, Lease, Server
from fleet.selectors.costs import lease_rates
from monitoring.selectors import latest_for_gpus
from panel.core.clock import now
from panel.core.errors import InvalidInput
from panel.core.money import Money

_ADVISORY_CLASS: Final = 0x0FD5
_random = random.SystemRandom()
TAKING: Final = (ServerState.READY, ServerState.DEGRADED)
# A card in whose memory somebody keeps more than this share is not free, whoever it is.
FOREIGN_SHARE: Final = 0.1
# Replicas without a card, of one server: what bounds them is its processors.
WITHOUT_GPU: Final = 16


@dataclass(frozen=True, slots=True)
class Placement:
    """Where replicas of an endpoint may go; what is empty asks for nothing.

    servers: ids, only these. labels: of the server, all of them. gpu_models: parts of a card's name, one of them.
    min_memory_bytes: of each card. max_price: of one card and hour, else of the machine when it gives no card; a server
    whose price is not known, or is in another currency, is not within it. is_spread: prefer servers without one of these.
    """

    servers: tuple[int, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    gpu_models: tuple[str, ...] = ()
    min_memory_bytes: int | None = None
    max_price: Money | None = None
    is_spread: bool = True

    @classmethod
    def read(cls, stored: dict[str, Any]) -> "Placement":
        """Return the placement that an endpoint keeps as JSON. Raises InvalidInput."""
        price = stored.get("max_price")
        try:
            return cls(
                servers=tuple(int(each) for each in stored.get("servers", ())),
                labels={str(key): str(value) for key, value in stored.get("labels", {}).items()},
                gpu_models=tuple(str(each) for each in stored.get("gpu_models", ())),
                min_memory_bytes=int(stored["min_memory_bytes"]) if stored.get("min_memory_bytes") else None,
                max_price=Money(Decimal(str(price["amount"])), price["currency"]) if price else None,
                is_spread=bool(stored.get("is_spread", True)),
            )
        except (TypeError, ValueError, KeyError, ArithmeticError, AttributeError) as error:
            raise InvalidInput(_("The placement cannot be read: %(error)s") % {"error": error}) from None


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for one replica: a server, its cards for it and a port that nothing of ours uses there."""

    server: Server
    gpus: tuple[Gpu, ...]
    port: int


@dataclass(slots=True)
class Candidate:
    """A server that may take replicas: its free cards by index, and its free ports."""

    server: Server
    serving: ServingHost
    gpus: list[Gpu]
    ports: list[int]
    siblings: int
    guests: int

    def fits(self, gpus: int) -> int:
        """Return how many replicas with so many cards each it could take."""
        cards = len(self.gpus) // gpus if gpus else max(WITHOUT_GPU - self.guests, 0)
        return min(cards, len(self.ports))


def placing_lock() -> None:
    """Let one process at a time give out cards and ports; held to the end of the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, 0)", [_ADVISORY_CLASS])


def room_for(endpoint: Endpoint, revision: Revision) -> int:
    """Return how many more replicas of a revision could be placed now."""
    return sum(candidate.fits(revision.gpus) for candidate in candidates(endpoint, revision))


def spot_find(endpoint: Endpoint, revision: Revision) -> Spot | None:
    """Return the place for the next replica of a revision, None when there is none.

    With `is_spread` a server with fewer replicas of the endpoint comes first, else one with more; then the one that is left
    with the fewest free cards, so that large pieces stay whole. Call under `placing_lock`.
    """
    way = 1 if Placement.read(endpoint.placement).is_spread else -1
    fitting = [each for each in candidates(endpoint, revision) if each.fits(revision.gpus)]
    if not fitting:
        return None
    best = min(fitting, key=lambda each: (each.siblings * way, len(each.gpus), each.guests, each.server.pk))
    return Spot(best.server, tuple(best.gpus[: revision.gpus]), best.ports[0])


def candidates(endpoint: Endpoint, revision: Revision) -> list[Candidate]:
    """Return the servers that may take a replica of a revision, with what is free on each."""
    placement = Placement.read(endpoint.placement)
    servers = [each for each in _servers(placement) if _may_serve(each, revision)]
    cards = _free_cards([server.pk for server in servers], placement) if revision.gpus else {}
    if placement.max_price is not None:
        servers = _affordable(servers, placement.max_price, is_per_card=revision.gpus > 0)
    ports: defaultdict[int, set[int]] = defaultdict(set)
    siblings: Counter[int] = Counter()
    guests: Counter[int] = Counter()
    open_replicas = Replica.objects.filter(server__in=servers, ended_at=None)
    for server_id, port, endpoint_id in open_replicas.values_list("server_id", "port", "endpoint_id"):
        ports[server_id].add(port)
        guests[server_id] += 1
        siblings[server_id] += endpoint_id == endpoint.pk
    return [
        Candidate(
            server=server,
            serving=serving_of(server),
            gpus=cards.get(server.pk, []),
            ports=_free_ports(serving_of(server), ports[server.pk]),
            siblings=siblings[server.pk],
            guests=guests[server.pk],
        )
        for server in servers
    ]


def serving_of(server: Server) -> ServingHost:
    """Return how a server serves; one of which nobody said anything serves as every other does."""
    serving = getattr(server, "serving", None)
    return serving if isinstance(serving, ServingHost) else ServingHost(server=server)


def _servers(placement: Placement) -> Iterable[Server]:
    found = Server.objects.filter(state__in=TAKING, agent__revoked_at=None).select_related("serving", "agent")
    if placement.servers:
        found = found.filter(pk__in=placement.servers)
    if placement.labels:
        found = found.filter(labels__contains=placement.labels)
    return found.order_by("pk")


def _may_serve(server: Server, revision: Revision) -> bool:
    serving = serving_of(server)
    is_wanted = serving.runtime in {RuntimeChoice.AUTO, revision.runtime}
    return is_wanted and not serving.is_cordoned and revision.runtime not in serving.unusable


def _free_cards(server_ids: Sequence[int], placement: Placement) -> dict[int, list[Gpu]]:
    """Return the cards of each server that no replica holds and nobody else uses, by index."""
    held = ReplicaGpu.objects.values("gpu_id")
    cards = Gpu.objects.filter(server_id__in=server_ids, state=GpuState.OK, removed_at=None, parent=None)
    cards = cards.exclude(pk__in=held).exclude(uuid__startswith=UNIDENTIFIED)
    if placement.min_memory_bytes is not None:
        cards = cards.filter(memory_total_bytes__gte=placement.min_memory_bytes)
    found = [each for each in cards.order_by("index", "pk") if _is_wanted(each, placement)]
    latest = latest_for_gpus(gpu_ids=[each.pk for each in found])
    free: defaultdict[int, list[Gpu]] = defaultdict(list)
    for card in found:
        used = latest[card.pk].values.get("memory_used_bytes") if card.pk in latest else None
        if used is None or not card.memory_total_bytes or used <= FOREIGN_SHARE * card.memory_total_bytes:
            free[card.server_id].append(card)
    return free


def _is_wanted(card: Gpu, placement: Placement) -> bool:
    """Say whether a card is of a wanted model and whole: one that MIG divides runs nothing itself."""
    models = [model.casefold() for model in placement.gpu_models]
    is_model = not models or any(model in card.name.casefold() for model in models)
    return is_model and not card.facts.get("mig_mode")


def _affordable(servers: Sequence[Server], limit: Money, *, is_per_card: bool) -> list[Server]:
    """Return the servers whose known price, for one card and hour, is within the limit."""
    leases = list(Lease.objects.filter(server__in=servers, ended_at=None))
    rates = lease_rates(leases=leases, at=now())
    prices = {lease.server_id: rates.get(lease.pk) for lease in leases}
    counts = Counter(
        Gpu.objects.filter(server__in=servers, removed_at=None, parent=None).values_list("server_id", flat=True)
    )
    return [each for each in servers if _is_within(prices.get(each.pk), limit, counts[each.pk] if is_per_card else 1)]


def _is_within(price: dict[str, Money] | None, limit: Money, cards: int) -> bool:
    if not price or set(price) != {limit.currency} or cards == 0:
        return False
    return price[limit.currency].amount / cards <= limit.amount


def port_elsewhere(replica: Replica) -> int | None:
    """Return another port of its server for a replica whose own is taken by a stranger; any, so as not to meet the next one.

    None when there is no other. Call under `placing_lock`.
    """
    serving = serving_of(replica.server)
    taken = set(Replica.objects.filter(server=replica.server_id, ended_at=None).values_list("port", flat=True))
    free = [port for port in range(serving.first_port, serving.last_port + 1) if port not in taken]
    return _random.choice(free) if free else None


def _free_ports(serving: ServingHost, taken: set[int]) -> list[int]:
    """Return some free ports, the lowest first: as many as could be given out before anybody looks again."""
    free = (port for port in range(serving.first_port, serving.last_port + 1) if port not in taken)
    return [port for port, _count in zip(free, range(64), strict=False)]
