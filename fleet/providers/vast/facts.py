"""Vast.ai's instances and asks read into ours. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from fleet.providers.base import Billing, Machine, MachineStatus, OfferFound, Stock, status_of
from fleet.providers.gpu_models import gpu_model
from fleet.providers.http import sentence
from fleet.providers.reading import money, number, text, time, whole
from panel.core.money import Money

CURRENCY: Final = "USD"
OFFER_DISK_GB: Final = 50  # an offer's price contains a disk of this size
MIB: Final = 1024**2

_S = MachineStatus
# actual_status; null (nothing is known of the container yet) stands as "".
STATUS: Final[Mapping[str, MachineStatus]] = {
    "": _S.PROVISIONING,
    "loading": _S.PROVISIONING,
    "created": _S.PROVISIONING,
    "rebooting": _S.PROVISIONING,
    "running": _S.RUNNING,
    "stopped": _S.STOPPED,
    "frozen": _S.STOPPED,
    "exited": _S.FAILED,
    "unknown": _S.FAILED,
    "offline": _S.FAILED,
}


def status(instance: Mapping[str, Any]) -> MachineStatus:
    """Return the state of an instance: of its container, its contract, and what is wanted of it, taken together."""
    actual, wanted = text(instance, "actual_status"), text(instance, "intended_status")
    states = {wanted, text(instance, "cur_state"), text(instance, "next_state")}
    if instance.get("is_bid") is True and states == {"stopped"}:
        return _S.PREEMPTED  # outbid; a person's own stop of a machine for a bid looks the same
    if wanted == "stopped":
        if actual in {"running", "rebooting"}:
            return _S.STOPPING
        if actual in {"exited", "stopped", ""}:
            return _S.STOPPED
    if wanted == "running" and actual == "stopped":
        return _S.PROVISIONING  # waits for its cards
    return status_of(actual, STATUS)


def machine_of(instance: Mapping[str, Any]) -> Machine:
    """Return an instance as a machine."""
    raw_gpu = text(instance, "gpu_name")
    memory_mib = whole(instance.get("gpu_ram"))
    model = gpu_model(raw_gpu, memory_mib / 1024 if memory_mib else None)
    found = status(instance)
    address, port = _way_in(instance)
    return Machine(
        external_id=text(instance, "id"),
        name=text(instance, "label"),
        status=found,
        raw_status=text(instance, "actual_status"),
        gpu_model=model.name if model else "",
        raw_gpu=raw_gpu,
        gpu_count=whole(instance.get("num_gpus")),
        gpu_memory_bytes=memory_mib * MIB if memory_mib else None,
        cpu_count=_cpus(instance),
        memory_bytes=_memory(instance),
        region=text(instance, "geolocation"),
        billing=Billing.SPOT if instance.get("is_bid") is True else Billing.HOURLY,
        price_per_hour=positive(instance.get("dph_total")),
        price_stopped_per_hour=positive(instance.get("storage_total_cost")),
        address=address,
        ssh_port=port,
        created_at=time(instance.get("start_date")),
        is_stop_saving=_is_stop_saving(instance) if found in {_S.STOPPED, _S.PREEMPTED} else None,
        details=_details(instance),
    )


def _details(instance: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else is worth knowing. Start commands, variables and the Jupyter token stay out."""
    ends_at = time(instance.get("end_date"))
    return {
        "machine_id": text(instance, "machine_id"),
        "host_id": text(instance, "host_id"),
        "image": text(instance, "image_uuid"),
        "disk_gb": text(instance, "disk_space"),
        "verification": text(instance, "verification"),
        "reliability": text(instance, "reliability2"),
        "told": sentence(text(instance, "status_msg")),
        "contract_ends_at": ends_at.isoformat() if ends_at else None,
    }


def _is_stop_saving(instance: Mapping[str, Any]) -> bool | None:
    """Say whether nothing is billed for the cards now: what the instance costs at present, where the API tells it."""
    costs = instance.get("instance")
    cards = number(costs.get("gpuCostPerHour")) if isinstance(costs, Mapping) else None
    if cards is not None:
        return cards == 0
    return False if text(instance, "actual_status") == "frozen" else None


def _way_in(instance: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return (address, SSH port): the machine's own where port 22 is mapped, else Vast.ai's proxy."""
    ports = instance.get("ports")
    mapped = ports.get("22/tcp") if isinstance(ports, Mapping) else None
    if isinstance(mapped, list) and mapped and isinstance(mapped[0], Mapping) and text(instance, "public_ipaddr"):
        port = whole(mapped[0].get("HostPort"))
        if port is not None:
            return text(instance, "public_ipaddr"), port
    return text(instance, "ssh_host"), whole(instance.get("ssh_port"))


def positive(value: Any) -> Money | None:
    """Return an amount above nought, None for anything else: nought here means that the API does not tell."""
    amount = money(value, CURRENCY)
    return amount if amount is not None and amount.amount > 0 else None


def _cpus(facts: Mapping[str, Any]) -> int | None:
    """Return the whole processors that belong to the cards that are rented."""
    cpus = number(facts.get("cpu_cores_effective"))
    return int(cpus) if cpus else None


def _memory(facts: Mapping[str, Any]) -> int | None:
    """Return the share of the host's memory that comes with the share of its processors; None where either is not told."""
    memory, cpus, of = (number(facts.get(key)) for key in ("cpu_ram", "cpu_cores_effective", "cpu_cores"))
    return int(memory * MIB * cpus / of) if memory and cpus and of else None


def offers_of(ask: Mapping[str, Any]) -> list[OfferFound]:
    """Return the offers of one ask: at its price, and for a bid where a least bid is told."""
    ask_id, count = whole(ask.get("id")), whole(ask.get("num_gpus"))
    raw_gpu = text(ask, "gpu_name")
    if ask_id is None or not count or not raw_gpu:
        return []
    price, base, least = positive(ask.get("dph_total")), positive(ask.get("dph_base")), positive(ask.get("min_bid"))
    offers = [_offer(ask, ask_id, count, Billing.HOURLY, price)]
    if least is not None:
        # A bid is for the cards; the disk costs the same beside it.
        disk = price.amount - base.amount if price and base else None
        bid = None if disk is None else Money(least.amount + disk, CURRENCY)
        offers.append(_offer(ask, ask_id, count, Billing.SPOT, bid))
    return offers


def _offer(ask: Mapping[str, Any], ask_id: int, count: int, billing: Billing, price: Money | None) -> OfferFound:
    memory_mib = whole(ask.get("gpu_ram"))
    raw_gpu = text(ask, "gpu_name")
    model = gpu_model(raw_gpu, memory_mib / 1024 if memory_mib else None)
    disk_gb = number(ask.get("disk_space"))
    return OfferFound(
        key=f"{ask_id}/{billing}",
        gpu_model=model.name if model else "",
        raw_gpu=raw_gpu,
        gpu_count=count,
        gpu_memory_bytes=memory_mib * MIB if memory_mib else None,
        region=text(ask, "geolocation"),
        billing=billing,
        price_per_hour=price,
        stock=Stock.LOW,
        stock_count=1,
        cpu_count=_cpus(ask),
        memory_bytes=_memory(ask),
        disk_bytes=int(disk_gb * Decimal(10) ** 9) if disk_gb else None,
        details={
            "ask_id": ask_id,
            "min_bid": text(ask, "min_bid"),
            "machine_id": text(ask, "machine_id"),
            "reliability": text(ask, "reliability2") or text(ask, "reliability"),
            "download_mbps": text(ask, "inet_down"),
            "upload_mbps": text(ask, "inet_up"),
            "cuda": text(ask, "cuda_max_good"),
            "storage_per_gb_month": text(ask, "storage_cost"),
        },
    )
