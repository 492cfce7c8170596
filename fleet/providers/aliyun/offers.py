"""What ECS sells: instance types with GPUs, by zone and way of paying, with stock and exact prices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from fleet.providers.aliyun.client import EcsClient
from fleet.providers.aliyun.prices import SPOT_STRATEGY, Prices
from fleet.providers.aliyun.shape import objects
from fleet.providers.base import TERM_HOURS, Billing, OfferFound, Stock
from fleet.providers.gpu_models import GIB, gpu_model
from fleet.providers.reading import number, text, whole
from panel.core.money import Money

# What is in stock is asked once for each of these, and stands for the ways of paying beside it.
AVAILABILITY: Final[Sequence[tuple[Mapping[str, str], Sequence[Billing]]]] = (
    ({"InstanceChargeType": "PostPaid"}, (Billing.HOURLY,)),
    ({"InstanceChargeType": "PostPaid", **SPOT_STRATEGY}, (Billing.SPOT,)),
    ({"InstanceChargeType": "PrePaid"}, (Billing.MONTHLY, Billing.YEARLY)),
)
# A pool that is closing still sells, but is nothing to plan on.
STOCK: Final = {
    "WithStock": Stock.HIGH,
    "ClosedWithStock": Stock.LOW,
    "WithoutStock": Stock.NONE,
    "ClosedWithoutStock": Stock.NONE,
}


@dataclass(frozen=True, slots=True)
class _Supply:
    """An instance type as one zone sells it."""

    zone: str
    instance_type: str
    stock: Stock


def offers_of(client: EcsClient, prices: Prices, region: str, beginnings: Sequence[str]) -> list[OfferFound]:
    """Return the offers of a region. beginnings: of instance types that are wanted; none for all.

    Types that are sold out are listed without a price, because asking for one costs a call each.
    """
    types = {
        text(each, "InstanceTypeId"): each
        for each in client.gpu_types(region)
        if whole(each.get("GPUAmount"))
        and (not beginnings or text(each, "InstanceTypeId").startswith(tuple(beginnings)))
    }
    if not types:
        return []
    offers: list[OfferFound] = []
    for charge, billings in AVAILABILITY:
        supplies = list(_supplies(client.available(region, charge), types))
        for billing in billings:
            for each in supplies:
                is_there = each.stock != Stock.NONE
                price = prices.price(region, each.zone, each.instance_type, billing) if is_there else None
                offers.append(_offer(types[each.instance_type], each, region, billing, price))
    return offers


def _supplies(zones: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> Iterator[_Supply]:
    for zone in zones:
        for resource in objects(zone, "AvailableResources", "AvailableResource"):
            if text(resource, "Type") != "InstanceType":
                continue
            for each in objects(resource, "SupportedResources", "SupportedResource"):
                if text(each, "Value") in types:
                    yield _Supply(text(zone, "ZoneId"), text(each, "Value"), stock_of(each))


def stock_of(resource: Mapping[str, Any]) -> Stock:
    """Return how much there is, from Status and StatusCategory; the sold-out word of either wins."""
    if text(resource, "Status") == "SoldOut":
        return Stock.NONE
    return STOCK.get(text(resource, "StatusCategory"), Stock.UNKNOWN)


def _offer(kind: Mapping[str, Any], supply: _Supply, region: str, billing: Billing, price: Money | None) -> OfferFound:
    memory_gib = number(kind.get("GPUMemorySize")) or None
    model = gpu_model(text(kind, "GPUSpec"), float(memory_gib) if memory_gib else None)
    ram_gib = number(kind.get("MemorySize"))
    hours = TERM_HOURS.get(billing)
    return OfferFound(
        key=f"{supply.zone}/{supply.instance_type}/{billing}",
        gpu_model=model.name if model else "",
        raw_gpu=text(kind, "GPUSpec") or supply.instance_type,
        gpu_count=whole(kind.get("GPUAmount")) or 1,
        gpu_memory_bytes=_bytes(memory_gib),
        region=supply.zone,
        billing=billing,
        price_per_hour=price / hours if price is not None and hours else price,
        price_per_term=price if hours else None,
        stock=supply.stock,
        cpu_count=whole(kind.get("CpuCoreCount")),
        memory_bytes=_bytes(ram_gib),
        details={"region": region, "zone": supply.zone, "instance_type": supply.instance_type},
    )


def _bytes(gib: Decimal | None) -> int | None:
    return int(gib * GIB) if gib else None
