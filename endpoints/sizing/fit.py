"""Whether a model fits on given GPUs or on an offer, at which tensor-parallel degree, with which arguments, for how much."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, Protocol

from django.utils.translation import gettext as _

from endpoints.sizing.memory import BLOCK_TOKENS, Need, need
from endpoints.sizing.shape import ModelShape
from panel.core.errors import InvalidInput
from panel.core.money import Money

Verdict = Literal["fits", "tight", "does_not", "unknown"]
# How good a verdict is; the better one is chosen, then the smaller degree.
_RANK: Final[Mapping[str, int]] = {"fits": 0, "tight": 1, "does_not": 2, "unknown": 3}
UTILIZATION: Final = 0.9
TIGHT_SHARE: Final = 0.95  # of what the engine may take
MOST_SLOTS: Final = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What is wanted of a model. context: tokens of prompt and answer. concurrency: requests at once, at full context."""

    shape: ModelShape
    context: int
    concurrency: int
    precision: str = "bfloat16"
    kv_precision: str = "auto"
    utilization: float = UTILIZATION

    def __post_init__(self) -> None:
        """Refuse what cannot be asked. Raises InvalidInput."""
        bounds = (("context", self.context, 1, 2**24), ("concurrency", self.concurrency, 1, MOST_SLOTS))
        for name, value, least, most in bounds:
            if not least <= value <= most:
                facts = {"name": name, "least": least, "most": most}
                raise InvalidInput(_("%(name)s must lie between %(least)s and %(most)s.") % facts, field=name)
        if not 0.05 <= self.utilization <= 0.99:
            raise InvalidInput(_("The share of memory must lie between 0.05 and 0.99."), field="utilization")
        limit = self.shape.max_context
        if limit is not None and self.context > limit:
            facts = {"context": self.context, "limit": limit}
            raise InvalidInput(
                _("The model knows %(limit)s tokens of context, not %(context)s: ask for less.") % facts,
                field="context",
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """How a model fits at one degree. need: bytes on each GPU, None when unknown.

    free_bytes: what remains of the share that the engine takes, negative when it does not fit. concurrency: requests at full
    context that fit. max_context: tokens that one request can have at most.
    """

    verdict: Verdict
    degree: int
    need: Need | None = None
    free_bytes: int | None = None
    concurrency: int = 0
    max_context: int = 0


class Offered(Protocol):
    """What can be rented, as far as sizing reads it. gpu_memory_bytes: of one card; price_per_hour: of the whole machine."""

    @property
    def gpu_count(self) -> int:
        """Cards in the machine."""

    @property
    def gpu_memory_bytes(self) -> int | None:
        """Memory of one card."""

    @property
    def price_per_hour(self) -> Money | None:
        """Price of the machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferFit:
    """How a model fits on an offer. replicas: that one machine holds. Prices None where the offer tells none, never 0."""

    fit: Fit
    replicas: int
    price_per_hour: Money | None
    price_per_replica_hour: Money | None


def degrees(shape: ModelShape, gpu_count: int) -> list[int]:
    """Return the tensor-parallel degrees up to gpu_count: they divide the attention heads, and the KV heads or are multiples."""
    return [
        degree
        for degree in range(1, max(gpu_count, 1) + 1)
        if shape.attention_heads % degree == 0
        and (shape.latent_size or shape.kv_heads % degree == 0 or degree % shape.kv_heads == 0)
    ]


def fit(demand: Demand, *, memory_bytes: int, degree: int) -> Fit:
    """Return how a model fits on `degree` GPUs of `memory_bytes` each.

    fits: all requests at full context, with a twentieth to spare. tight: one at full context fits, but not all of them, or
    nothing is spare; the engine then lets requests wait. does_not: not even one.
    """
    wanted = _need(demand, degree)
    budget = int(memory_bytes * demand.utilization)
    left = budget - wanted.weights_bytes - wanted.overhead_bytes
    slots = min(max(left // wanted.kv_request_bytes, 0), MOST_SLOTS)
    verdict: Verdict = "fits" if wanted.total_bytes <= budget * TIGHT_SHARE else "tight" if slots >= 1 else "does_not"
    longest = _longest(demand, left, degree)
    return Fit(
        verdict=verdict,
        degree=degree,
        need=wanted,
        free_bytes=budget - wanted.total_bytes,
        concurrency=slots,
        max_context=longest,
    )


def best_fit(demand: Demand, *, memory_bytes: int | None, gpu_count: int) -> Fit:
    """Return the best way on up to gpu_count equal GPUs: one that fits at the smallest degree, else the least bad one."""
    if memory_bytes is None or memory_bytes <= 0 or gpu_count < 1:
        return Fit(verdict="unknown", degree=1)
    ways = [fit(demand, memory_bytes=memory_bytes, degree=degree) for degree in degrees(demand.shape, gpu_count)]
    return min(
        ways, key=lambda way: (_RANK[way.verdict], -way.concurrency if way.verdict == "does_not" else way.degree)
    )


def offer_fit(demand: Demand, offer: Offered) -> OfferFit:
    """Return how a model fits on an offer and what an hour costs: of the machine, and of each replica that it holds."""
    found = best_fit(demand, memory_bytes=offer.gpu_memory_bytes, gpu_count=offer.gpu_count)
    replicas = offer.gpu_count // found.degree if found.verdict in {"fits", "tight"} else 0
    price = offer.price_per_hour
    each = price / Decimal(replicas) if price is not None and replicas else None
    return OfferFit(fit=found, replicas=replicas, price_per_hour=price, price_per_replica_hour=each)


def cheapest_first(found: Iterable[OfferFit]) -> list[OfferFit]:
    """Sort: what fits before what is tight; by currency, then price per replica; without a price last."""
    return sorted(
        found,
        key=lambda one: (
            _RANK[one.fit.verdict],
            one.price_per_replica_hour is None,
            one.price_per_replica_hour.currency if one.price_per_replica_hour else "",
            one.price_per_replica_hour.amount if one.price_per_replica_hour else Decimal(0),
        ),
    )


def _need(demand: Demand, degree: int, *, context: int | None = None) -> Need:
    return need(
        demand.shape,
        precision_name=demand.precision,
        kv_precision=demand.kv_precision,
        context=context or demand.context,
        concurrency=demand.concurrency,
        degree=degree,
    )


def _longest(demand: Demand, left: int, degree: int) -> int:
    """Return the tokens of the longest single request, by halving; memory grows with the context."""
    most = demand.shape.max_context or 2**24
    low, high = 0, most // BLOCK_TOKENS
    while low < high:
        middle = (low + high + 1) // 2
        if _need(demand, degree, context=middle * BLOCK_TOKENS).kv_request_bytes <= left:
            low = middle
        else:
            high = middle - 1
    return low * BLOCK_TOKENS
