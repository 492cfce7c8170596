"""Whether a model fits, on each server's GPUs and on each offer, with what an hour costs: rows for the wizard's hardware step."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.utils.translation import gettext as _

from endpoints.costs import card_rates
from endpoints.models import ReplicaGpu
from endpoints.sizing.fit import Demand, Fit, OfferFit, best_fit, cheapest_first, offer_fit
from endpoints.sizing.shape import ModelShape
from fleet.enums import GpuState
from fleet.models import Gpu, Offer
from fleet.selectors.leasing import offer_list
from frontend.serving.wizard_forms import HardwareForm
from panel.core.errors import InvalidInput
from panel.core.money import Money

OFFERS_SHOWN: Final = 12
_TYPED: Final = ("layers", "attention_heads", "kv_heads", "head_size")
_TONES: Final = {"fits": "ok", "tight": "warning", "does_not": "critical", "unknown": "unknown"}


def verdict_word(verdict: str) -> str:
    """Return a verdict in a word."""
    return {"fits": _("fits"), "tight": _("tight"), "does_not": _("does not fit"), "unknown": _("not known")}[verdict]


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of card that is there, or one offer. free: cards that no replica holds; rate: of one replica and hour."""

    name: str
    gpu: str
    cards: int
    free: int | None
    memory_bytes: int | None
    fit: Fit
    rate: Mapping[str, Money] | None
    href_id: int | None = None

    @property
    def tone(self) -> str:
        """Return the mark of the verdict."""
        return _TONES[self.fit.verdict]

    @property
    def word(self) -> str:
        """Return the verdict."""
        return verdict_word(self.fit.verdict)

    @property
    def used_percent(self) -> int | None:
        """Return how much of a card's memory is needed, in percent; None when it is not known."""
        if self.fit.need is None or not self.memory_bytes:
            return None
        return round(100 * self.fit.need.total_bytes / self.memory_bytes)


@dataclass(frozen=True, slots=True)
class Sizing:
    """Verdicts for everything that is there and that could be rented. best: the arguments of the best of them."""

    servers: Sequence[Row]
    offers: Sequence[Row]
    left_out: int

    @property
    def best(self) -> Fit | None:
        """Return the best way on what is registered, else on offers; None when it fits nowhere."""
        good = [row.fit for row in (*self.servers, *self.offers) if row.fit.verdict in {"fits", "tight"}]
        return min(good, key=lambda fit: (fit.verdict != "fits", fit.degree), default=None)


def shape_of(form: HardwareForm) -> ModelShape | None:
    """Return the model's shape, None when nothing was said of it; half of one is an error at the missing field."""
    read = getattr(form, "read", None)
    if isinstance(read, ModelShape):
        return read
    given = form.cleaned_data
    typed = {name: given.get(name) for name in _TYPED}
    kept = _kept(given.get("shape", ""))
    if not given.get("parameters") and not any(typed.values()):
        return kept
    missing = [name for name in ("parameters", *_TYPED) if not given.get(name)]
    for name in missing:
        form.add_error(name, _("Type it in too, or paste the model's config.json."))
    if missing:
        return None
    parameters = int(given["parameters"] * 10**9)
    try:
        if kept is not None and _is_same(kept, given):
            return kept
        return ModelShape(parameters=parameters, **typed)  # type: ignore[arg-type]  # none is missing
    except InvalidInput as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        return None


def _is_same(kept: ModelShape, given: Mapping[str, Any]) -> bool:
    """Say whether the fields still say what was read from the file, which knows more than they do."""
    is_rounded = round(Decimal(kept.parameters) / 10**9, 4) == round(given["parameters"], 4)
    return is_rounded and all(getattr(kept, name) == given[name] for name in _TYPED)


def _kept(text: str) -> ModelShape | None:
    try:
        return ModelShape(**json.loads(text)) if text else None
    except (ValueError, TypeError, InvalidInput):
        return None


def fields_of(shape: ModelShape) -> dict[str, str]:
    """Return a shape as fields of the form, and whole in the hidden one."""
    billions = round(Decimal(shape.parameters) / 10**9, 4).normalize()
    kept = {name: value for name, value in asdict(shape).items() if value}
    return {
        "parameters": f"{billions:f}",
        **{name: str(getattr(shape, name)) for name in _TYPED},
        "shape": json.dumps(kept, separators=(",", ":")),
    }


def demand_of(form: HardwareForm, shape: ModelShape) -> Demand | None:
    """Return what is wanted; a refusal is shown at its field, None then."""
    given = form.cleaned_data
    try:
        return Demand(
            shape=shape, context=given["context"], concurrency=given["concurrency"], precision=given["precision"]
        )
    except InvalidInput as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        return None


def sizing_of(demand: Demand, at: datetime) -> Sizing:
    """Return the verdicts. Seven queries."""
    offers = cheapest_rows(demand)
    return Sizing(server_rows(demand, at), offers[:OFFERS_SHOWN], max(len(offers) - OFFERS_SHOWN, 0))


def server_rows(demand: Demand, at: datetime) -> list[Row]:
    """Return the verdict for each server and kind of card there."""
    held = set(ReplicaGpu.objects.values_list("gpu_id", flat=True))
    whole = Gpu.objects.filter(removed_at=None, parent=None, state=GpuState.OK, server__retired_at=None)
    groups: defaultdict[tuple[str, int, str, int | None], list[Gpu]] = defaultdict(list)
    for gpu in whole.select_related("server").order_by("server__name", "index"):
        groups[gpu.server.name, gpu.server_id, gpu.name, gpu.memory_total_bytes].append(gpu)
    rates = card_rates(server_ids={key[1] for key in groups}, at=at)
    return [_server_row(demand, key, cards, held, rates[key[1]]) for key, cards in groups.items()]


def _server_row(
    demand: Demand,
    key: tuple[str, int, str, int | None],
    cards: list[Gpu],
    held: set[int],
    rate: dict[str, Money] | None,
) -> Row:
    found = best_fit(demand, memory_bytes=key[3], gpu_count=len(cards))
    hour = {code: money * found.degree for code, money in rate.items()} if rate else None
    return Row(
        name=key[0], gpu=key[2], cards=len(cards), free=sum(card.pk not in held for card in cards),
        memory_bytes=key[3], fit=found, rate=hour, href_id=key[1],
    )  # fmt: skip


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


def cheapest_rows(demand: Demand) -> list[Row]:
    """Return the verdict for each offer on which the model fits, the cheapest replica first."""
    offers = [offer for offer in offer_list() if offer.gpu_count > 0 and offer.stock != "none"]
    found = [(offer_fit(demand, _Offered(offer)), offer) for offer in offers]
    by_fit = {id(fit): offer for fit, offer in found}
    return [_offer_row(fit, by_fit[id(fit)]) for fit in cheapest_first(fit for fit, _offer in found) if fit.replicas]


def _offer_row(found: OfferFit, offer: Offer) -> Row:
    price = found.price_per_replica_hour
    return Row(
        name=offer.account.name, gpu=offer.gpu_model or offer.raw_gpu, cards=offer.gpu_count, free=None,
        memory_bytes=offer.gpu_memory_bytes, fit=found.fit, rate={price.currency: price} if price else None,
        href_id=offer.pk,
    )  # fmt: skip
