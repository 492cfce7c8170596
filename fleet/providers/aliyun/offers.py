"""What ECS sells: instance types with GPUs, by zone and way of paying, with stock and exact prices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from fleet.providers.aliyun.client import EcsClient
from fleet.providers.base import TERM_HOURS, Billing, OfferFound, Stock
from fleet.providers.gpu_models import GIB, gpu_model
from fleet.providers.reading import money, number, text, whole
from panel.core.money import Money

SPOT_STRATEGY: Final = {"SpotStrategy": "SpotAsPriceGo"}
# What is in stock is asked once for each of these, and stands for the ways of paying beside it.
AVAILABILITY: Final[Sequence[tuple[Mapping[str, str], Sequence[Billing]]]] = (
    ({"InstanceChargeType": "PostPaid"}, (Billing.HOURLY,)),
    ({"InstanceChargeType": "PostPaid", **SPOT_STRATEGY}, (Billing.SPOT,)),
    ({"InstanceChargeType": "PrePaid"}, (Billing.MONTHLY, Billing.YEARLY)),
)
# How the price of each is asked. Spot has a price of its own in every zone.
TERMS: Final[Mapping[Billing, Mapping[str, str]]] = {
    Billing.HOURLY: {"PriceUnit": "Hour", "Period": "1"},
    Billing.SPOT: {"PriceUnit": "Hour", "Period": "1", **SPOT_STRATEGY},
    Billing.MONTHLY: {"PriceUnit": "Month", "Period": "1"},
    Billing.YEARLY: {"PriceUnit": "Year", "Period": "1"},
}
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


def offers_of(client: EcsClient, region: str, beginnings: Sequence[str]) -> list[OfferFound]:
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
            offers += _priced(client, region, billing, types, supplies)
    return offers


def _supplies(zones: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> Iterator[_Supply]:
    for zone in zones:
        for resource in _inside(zone, "AvailableResources", "AvailableResource"):
            if text(resource, "Type") != "InstanceType":
                continue
            for each in _inside(resource, "SupportedResources", "SupportedResource"):
                if text(each, "Value") in types:
                    yield _Supply(text(zone, "ZoneId"), text(each, "Value"), stock_of(each))


def stock_of(resource: Mapping[str, Any]) -> Stock:
    """Return how much there is, from Status and StatusCategory; the sold-out word of either wins."""
    if text(resource, "Status") == "SoldOut":
        return Stock.NONE
    return STOCK.get(text(resource, "StatusCategory"), Stock.UNKNOWN)


def _priced(
    client: EcsClient, region: str, billing: Billing, types: Mapping[str, Any], supplies: Sequence[_Supply]
) -> Iterator[OfferFound]:
    known: dict[tuple[str, str], Money | None] = {}
    for supply in supplies:
        zone = supply.zone if billing == Billing.SPOT else ""
        key = (supply.instance_type, zone)
        if supply.stock != Stock.NONE and key not in known:
            terms = {**TERMS[billing], **({"ZoneId": zone} if zone else {})}
            known[key] = instance_price(client.price(region, supply.instance_type, terms))
        price = known.get(key) if supply.stock != Stock.NONE else None
        yield _offer(types[supply.instance_type], supply, region, billing, price)


def instance_price(price: Mapping[str, Any] | None) -> Money | None:
    """Return what the instance itself costs for the period asked for: this account pays the trade price.

    A disk or bandwidth that the API prices along with it is left out. The currency stands beside the amount.
    """
    if price is None:
        return None
    parts = [each for each in _inside(price, "DetailInfos", "DetailInfo") if text(each, "Resource") == "instance"]
    amount = (parts[0] if parts else price).get("TradePrice")
    found = money(amount, text(price, "Currency") or "CNY")
    return found if found is not None and found.amount > 0 else None


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


def _inside(body: Mapping[str, Any], outer: str, inner: str) -> list[Mapping[str, Any]]:
    wrapper = body.get(outer)
    found = wrapper.get(inner) if isinstance(wrapper, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
