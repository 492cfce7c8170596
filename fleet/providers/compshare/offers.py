"""What Compshare sells, and how it is ordered: forms of machines, free cards by pool, quotes in yuan. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from fleet.providers.base import PREPAID, Billing, MachineOrder, OfferFound, Stock
from fleet.providers.compshare.client import objects
from fleet.providers.compshare.machines import CURRENCY, hourly
from fleet.providers.errors import Refused
from fleet.providers.gpu_models import GIB, gpu_model
from fleet.providers.reading import money, text, whole
from panel.core.money import Money

COUNTS: Final = frozenset({1, 2, 4, 8})
DISK_GIB: Final = 100  # free of charge; quotes are for it
LEAST_DISK_GIB: Final = 20
MOST_DISK_GIB: Final = 1000
POOLS: Final[Mapping[Billing, str]] = {Billing.SPOT: "Spot"}
POOL: Final = "Exclusive"
# What can be ordered, by charge type. Dynamic is of disks only, and a year is not in the documentation of orders.
OFFERED: Final[Mapping[str, Billing]] = {
    "Postpay": Billing.HOURLY,
    "Spot": Billing.SPOT,
    "Day": Billing.DAILY,
    "Month": Billing.MONTHLY,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """One machine that can be had in a zone: the least CPU and memory that go with so many cards."""

    region: str
    zone: str
    gpu_type: str
    gpu_count: int
    gpu_memory_gib: int | None
    cpu_count: int
    memory_gib: int
    boot_disk: str
    is_sold_out: bool

    def quote_params(self) -> dict[str, Any]:
        """Return what a quote is asked with; memory in MB there."""
        return {
            "Region": self.region,
            "Zone": self.zone,
            "GpuType": self.gpu_type,
            "Gpu": self.gpu_count,
            "Cpu": self.cpu_count,
            "Memory": self.memory_gib * 1024,
            "Disks": [{"IsBoot": True, "Type": self.boot_disk, "Size": DISK_GIB}],
        }


def forms_of(entry: Mapping[str, Any], region: str) -> Iterator[Form]:
    """Yield the forms of one type in one zone. Spot is no type of its own: its cards are told by the inventory."""
    if not text(entry, "Zone") or text(entry, "InstanceType") == "spot" or text(entry, "Status") == "Hidden":
        return
    for size in objects(entry, "MachineSizes"):
        count = whole(size.get("Gpu"))
        pairs = [
            (cpu, memory)
            for pair in objects(size, "Collection")
            if (cpu := whole(pair.get("Cpu")))
            for memory in _wholes(pair.get("Memory"))
        ]
        if count in COUNTS and pairs:
            cpu_count, memory_gib = min(pairs)
            yield Form(
                region=region,
                zone=text(entry, "Zone"),
                gpu_type=text(entry, "Name"),
                gpu_count=count,
                gpu_memory_gib=_memory_gib(entry),
                cpu_count=cpu_count,
                memory_gib=memory_gib,
                boot_disk=_boot_disk(entry),
                is_sold_out=text(entry, "Status").lower() == "soldout",
            )


def _memory_gib(entry: Mapping[str, Any]) -> int | None:
    found = entry.get("GraphicsMemory")
    return whole(found.get("Value")) if isinstance(found, Mapping) else None


def _wholes(value: Any) -> list[int]:
    return [number for each in value if (number := whole(each))] if isinstance(value, list) else []


def _boot_disk(entry: Mapping[str, Any]) -> str:
    """Return the kind of system disk: the plain SSD unless the type does not have it."""
    kinds = [text(disk, "Name") for group in objects(entry, "Disks") for disk in objects(group, "BootDisk")]
    return "CLOUD_SSD" if "CLOUD_SSD" in kinds or not kinds else kinds[0]


@dataclass(frozen=True, slots=True)
class Inventory:
    """The free cards: (pool, zone id, type) → cards, and which types have no spot machines."""

    cards: Mapping[tuple[str, str, str], int]
    without_spot: frozenset[str]

    def stock(self, form: Form, zone_id: str, billing: Billing) -> tuple[Stock, int | None]:
        """Return how much of a form there is, and how many machines where that is told: of single cards alone."""
        free = self.cards.get((POOLS.get(billing, POOL), zone_id, form.gpu_type))
        if billing == Billing.SPOT and form.gpu_type in self.without_spot:
            return Stock.NONE, 0
        if free is None:
            return (Stock.NONE, 0) if form.is_sold_out else (Stock.UNKNOWN, None)
        machines = free // form.gpu_count  # at most: the cards may lie in several hosts
        found = next(stock for least, stock in _LEVELS if machines >= least)
        return found, machines if form.gpu_count == 1 or not machines else None


_LEVELS: Final = ((16, Stock.HIGH), (4, Stock.MEDIUM), (1, Stock.LOW), (0, Stock.NONE))


def inventory_of(answers: Iterable[Mapping[str, Any]]) -> Inventory:
    """Return the inventory of all regions. Its key has one name in the documentation and another on the wire."""
    cards: dict[tuple[str, str, str], int] = {}
    without: set[str] = set()
    for answer in answers:
        pools = _mapping(answer.get("GpuInventory") or answer.get("GpuInventoryByZone"))
        for pool, zones in pools.items():
            for zone_id, types in _mapping(zones).items():
                for gpu_type, free in _mapping(types).items():
                    if (number := whole(free)) is not None and number >= 0:
                        cards[pool, zone_id, gpu_type] = number
        unsupported = answer.get("SpotUnsupportedGpuTypes")
        without |= {str(each) for each in unsupported} if isinstance(unsupported, list) else set()
    return Inventory(cards, frozenset(without))


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return an object, also when it comes as its own JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def quotes_of(answer: Mapping[str, Any]) -> dict[str, Money]:
    """Return charge type → price of its term, disks with it. The key has an s in the documentation and none in the SDK."""
    found: dict[str, Money] = {}
    for entry in objects(answer, "PriceDetails") or objects(answer, "PriceDetail"):
        parts = [money(entry.get(key), CURRENCY) for key in ("Instance", "SystemDisks", "Disks")]
        if parts[0] is not None and parts[0].amount:
            told = [part for part in parts[1:] if part is not None]
            found[text(entry, "ChargeType")] = sum(told, parts[0])
    return found


def offers_of(form: Form, inventory: Inventory, zone_id: str, quotes: Mapping[str, Money]) -> list[OfferFound]:
    """Return one offer for each way to pay that is quoted; the hourly one without a price where none is."""
    kinds = [
        kind for kind in OFFERED if kind in quotes and (kind != "Spot" or form.gpu_type not in inventory.without_spot)
    ]
    return [_offer(form, kind, inventory, zone_id, quotes.get(kind)) for kind in kinds or ["Postpay"]]


def _offer(form: Form, kind: str, inventory: Inventory, zone_id: str, price: Money | None) -> OfferFound:
    billing = OFFERED[kind]
    model = gpu_model(form.gpu_type, form.gpu_memory_gib)
    stock, stock_count = inventory.stock(form, zone_id, billing)
    memory = form.gpu_memory_gib * GIB if form.gpu_memory_gib else None
    return OfferFound(
        key=f"{form.zone}/{form.gpu_type}/{form.gpu_count}/{kind}",
        gpu_model=model.name if model else "",
        raw_gpu=form.gpu_type,
        gpu_count=form.gpu_count,
        gpu_memory_bytes=memory or (model.memory_bytes if model else None),
        region=form.zone,
        billing=billing,
        price_per_hour=hourly(price, billing),
        price_per_term=price if billing in PREPAID else None,
        stock=stock,
        stock_count=stock_count,
        cpu_count=form.cpu_count,
        memory_bytes=form.memory_gib * GIB,
        disk_bytes=DISK_GIB * GIB,
        details={
            "region": form.region,
            "zone": form.zone,
            "gpu_type": form.gpu_type,
            "cpu": form.cpu_count,
            "memory_mib": form.memory_gib * 1024,
            "boot_disk": form.boot_disk,
            "charge_type": kind,
        },
    )


def order_params(order: MachineOrder, options: Mapping[str, str]) -> dict[str, Any]:
    """Return what an instance is ordered with. Raises Refused for a disk that cannot be had."""
    details, size = order.details, whole(options["disk_gb"])
    if size is None or not LEAST_DISK_GIB <= size <= MOST_DISK_GIB:
        facts = {"least": LEAST_DISK_GIB, "most": MOST_DISK_GIB}
        raise Refused(_("The system disk must have %(least)d to %(most)d GB.") % facts, permanent=True)
    return {
        "Region": details["region"],
        "Zone": details["zone"],
        "GpuType": details["gpu_type"],
        "GPU": order.gpu_count,
        "CPU": details["cpu"],
        "Memory": details["memory_mib"],
        "MachineType": "G",
        "MinimalCpuPlatform": "Auto",
        "CompShareImageId": options["image"],
        "Disks": [{"IsBoot": True, "Type": details["boot_disk"], "Size": size}],
        "ChargeType": details["charge_type"],  # the vendor's default is a month
        "Quantity": 1 if order.billing in PREPAID else None,
        "Name": order.name,
    }
