"""What CVM sells: instance types with whole GPUs, by zone and way of paying, with stock and exact prices. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fleet.providers.base import TERM_HOURS, Billing, OfferFound, Stock
from fleet.providers.gpu_models import GIB, GpuModel
from fleet.providers.reading import money, number, text, whole
from fleet.providers.tencent.machines import card_of
from panel.core.money import Money

CURRENCY: Final = "CNY"
CHARGE_TYPES: Final = ("POSTPAID_BY_HOUR", "SPOTPAID", "PREPAID")
STOCK: Final = {
    "EnoughStock": Stock.HIGH,
    "NormalStock": Stock.MEDIUM,
    "UnderStock": Stock.LOW,
    "WithoutStock": Stock.NONE,
}
# Where the price of each way of paying stands, the discounted one first. 0 stands there for "not this way".
_HOUR: Final = ("UnitPriceDiscount", "UnitPrice")
PRICES: Final[Mapping[str, Sequence[tuple[Billing, Sequence[str]]]]] = {
    "POSTPAID_BY_HOUR": ((Billing.HOURLY, _HOUR),),
    "SPOTPAID": ((Billing.SPOT, _HOUR),),
    "PREPAID": (
        (Billing.MONTHLY, ("DiscountPrice", "OriginalPrice")),
        (Billing.YEARLY, ("DiscountPriceOneYear", "OriginalPriceOneYear")),
    ),
}
# Pay-as-you-go gets cheaper with the hours that a machine has run.
STEPS: Final = {
    "price_after_96_hours": ("UnitPriceDiscountSecondStep", "UnitPriceSecondStep"),
    "price_after_360_hours": ("UnitPriceDiscountThirdStep", "UnitPriceThirdStep"),
}


def offers_of(
    sold: Sequence[Mapping[str, Any]], types: Sequence[Mapping[str, Any]], region: str, beginnings: Sequence[str]
) -> Iterator[OfferFound]:
    """Yield the offers of a region. types: of DescribeInstanceTypeConfigs, which alone names the cards.

    beginnings: of instance types that are wanted; none for all. Types with a part of a card are left out.
    """
    cards = {(text(each, "Zone"), text(each, "InstanceType")): each for each in types}
    for item in sold:
        name = text(item, "InstanceType")
        if beginnings and not name.startswith(tuple(beginnings)):
            continue
        card = cards.get((text(item, "Zone"), name), {})
        count = _cards(item) or _cards(card)
        if not count:
            continue
        for billing, fields in PRICES.get(text(item, "InstanceChargeType"), ()):
            price = price_of(item.get("Price"), fields, billing)
            # A year without a price is not sold: the API names terms beyond the month by their prices alone.
            if price is not None or billing != Billing.YEARLY:
                yield _offer(item, card, count, region, billing=billing, price=price)


def stock_of(item: Mapping[str, Any]) -> Stock:
    """Return how much there is, from Status and StatusCategory; the sold-out word of either wins."""
    if text(item, "Status") == "SOLD_OUT":
        return Stock.NONE
    return STOCK.get(text(item, "StatusCategory"), Stock.UNKNOWN)


def price_of(price: Any, fields: Sequence[str], billing: Billing) -> Money | None:
    """Return the first amount above 0 among the fields, None when there is none or it is by another unit than the hour."""
    if not isinstance(price, Mapping):
        return None
    if billing not in TERM_HOURS and text(price, "ChargeUnit") not in {"HOUR", ""}:
        return None
    found = (money(price.get(name), CURRENCY) for name in fields)
    return next((amount for amount in found if amount is not None and amount.amount > 0), None)


def _cards(item: Mapping[str, Any]) -> int | None:
    """Return the whole cards of a type, 0 for none, None for a part of one (GpuCount below 1)."""
    return whole(item["GpuCount"]) if item.get("GpuCount") else whole(item.get("Gpu") or item.get("GPU"))


def _offer(
    item: Mapping[str, Any], card: Mapping[str, Any], count: int, region: str, *, billing: Billing, price: Money | None
) -> OfferFound:
    zone, name = text(item, "Zone"), text(item, "InstanceType")
    memory_gib = number(card.get("GpuMemory")) or None
    model: GpuModel | None = card_of(text(card, "GpuType"), name, float(memory_gib) if memory_gib else None)
    hours, ram_gib = TERM_HOURS.get(billing), whole(item.get("Memory"))
    return OfferFound(
        key=f"{zone}/{name}/{billing}",
        gpu_model=model.name if model else "",
        raw_gpu=text(card, "GpuType") or name,
        gpu_count=count,
        gpu_memory_bytes=int(memory_gib * GIB) if memory_gib else (model.memory_bytes if model else None),
        region=zone,
        billing=billing,
        price_per_hour=price / hours if price is not None and hours else price,
        price_per_term=price if hours else None,
        stock=stock_of(item),
        cpu_count=whole(item.get("Cpu")),
        memory_bytes=ram_gib * GIB if ram_gib else None,
        details={"region": region, "zone": zone, "instance_type": name, **_steps(item.get("Price"), billing)},
    )


def _steps(price: Any, billing: Billing) -> dict[str, str]:
    if billing != Billing.HOURLY:
        return {}
    found = {name: price_of(price, fields, billing) for name, fields in STEPS.items()}
    return {name: str(amount.amount) for name, amount in found.items() if amount is not None}
