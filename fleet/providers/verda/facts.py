"""Verda's instances and types read into ours: states, prices per GPU made prices of the machine. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from fleet.providers.base import Billing, Machine, MachineStatus, OfferFound, Stock, status_of
from fleet.providers.gpu_models import GIB, gpu_model
from fleet.providers.reading import money, text, time, whole
from panel.core.money import Money

_S = MachineStatus
STATUS: Final[Mapping[str, MachineStatus]] = {
    "new": _S.PROVISIONING,
    "ordered": _S.PROVISIONING,
    "provisioning": _S.PROVISIONING,
    "validating": _S.PROVISIONING,
    "pending": _S.PROVISIONING,  # waits for capacity
    "restoring": _S.PROVISIONING,
    "running": _S.RUNNING,
    "starting_hibernation": _S.STOPPING,
    "hibernating": _S.STOPPING,
    "offline": _S.STOPPED,
    "error": _S.FAILED,
    "no_capacity": _S.FAILED,  # an order that was taken and could not be met after all
    "deleting": _S.TERMINATING,
    "discontinued": _S.GONE,
    "notfound": _S.GONE,
    "unknown": _S.UNKNOWN,
}
# Shut down it costs all the same; taken back it is over, and its disk went to the trash.
STOP_SAVES: Final[Mapping[MachineStatus, bool]] = {_S.STOPPED: False, _S.PREEMPTED: True}
PRICES: Final = {Billing.HOURLY: "price_per_hour", Billing.SPOT: "spot_price"}


def machine_of(instance: Mapping[str, Any], currency: str) -> Machine:
    """Return an instance as a machine. Shut down it costs the same, so it has no price of its own for that."""
    gpus, cpus = _gpus(instance), _cpus(instance)
    raw_gpu = text(instance.get("gpu"), "description")
    each_gb = _memory_of_one(instance)
    model = gpu_model(raw_gpu, each_gb) or gpu_model(text(instance, "instance_type"), each_gb)
    memory = _gigabytes(instance.get("memory"))
    price = _price_of_instance(instance, currency)
    status = _status(instance)
    return Machine(
        external_id=text(instance, "id"),
        name=text(instance, "hostname"),
        status=status,
        raw_status=text(instance, "status"),
        gpu_model=model.name if model else "",
        raw_gpu=raw_gpu,
        gpu_count=gpus,
        gpu_memory_bytes=model.memory_bytes if model else None,
        cpu_count=cpus,
        memory_bytes=memory * GIB if memory else None,
        region=text(instance, "location"),
        billing=Billing.SPOT if instance.get("is_spot") is True else Billing.HOURLY,
        price_per_hour=price,
        address=text(instance, "ip"),
        ssh_port=22 if text(instance, "ip") else None,
        created_at=time(instance.get("created_at")),
        is_stop_saving=STOP_SAVES.get(status),
        details=_details(instance),
    )


def offers_of(
    types: Sequence[Mapping[str, Any]], available: Collection[tuple[str, str]], billing: Billing, currency: str
) -> list[OfferFound]:
    """Return the offers of one billing kind: one for each type and location that has it, one without where none has.

    available: (type, location) pairs. Types without a GPU are left out.
    """
    found: list[OfferFound] = []
    for kind in types:
        if _gpus(kind):
            places = sorted(place for name, place in available if name == text(kind, "instance_type"))
            found += [_offer(kind, billing, place, currency) for place in places or [""]]
    return found


def _offer(kind: Mapping[str, Any], billing: Billing, place: str, currency: str) -> OfferFound:
    raw_gpu = text(kind, "name") or text(kind, "model")
    model = gpu_model(raw_gpu, _memory_of_one(kind))
    memory = _gigabytes(kind.get("memory"))
    name = text(kind, "instance_type")
    price = _positive(kind.get(PRICES[billing]), currency)  # of the whole machine, unlike an instance's
    return OfferFound(
        key=f"{name}/{place}/{billing}",
        gpu_model=model.name if model else "",
        raw_gpu=raw_gpu or name,
        gpu_count=_gpus(kind) or 0,
        gpu_memory_bytes=model.memory_bytes if model else None,
        region=place,
        billing=billing,
        price_per_hour=price,
        stock=Stock.MEDIUM if place else Stock.NONE,  # Verda tells that there is one, not how many
        cpu_count=_cpus(kind),
        memory_bytes=memory * GIB if memory else None,
        details={"instance_type": name},
    )


def _status(instance: Mapping[str, Any]) -> MachineStatus:
    """Return the state; a spot machine that was discontinued was taken back."""
    found = status_of(text(instance, "status"), STATUS)
    is_taken = text(instance, "status") == "discontinued" and instance.get("is_spot") is True
    return _S.PREEMPTED if is_taken else found


def _price_of_instance(instance: Mapping[str, Any], currency: str) -> Money | None:
    """Return the price of the whole machine: the API tells it for one GPU, or one processor where there is no GPU."""
    units = _gpus(instance) or _cpus(instance)
    price = _positive(instance.get("price_per_hour"), currency)
    return price * units if price is not None and units else None


def _positive(value: Any, currency: str) -> Money | None:
    price = money(value, currency)
    return price if price is not None and price.amount > 0 else None


def _details(instance: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else is worth knowing; the Jupyter token stays out."""
    return {
        "instance_type": text(instance, "instance_type"),
        "image": text(instance, "image"),
        "contract": text(instance, "contract"),
        "pricing": text(instance, "pricing"),
        "description": text(instance, "description"),
        "system_disk": text(instance, "os_volume_id"),
        "volumes": [str(each) for each in instance.get("volume_ids") or []],
    }


def _gpus(found: Mapping[str, Any]) -> int | None:
    return whole((found.get("gpu") or {}).get("number_of_gpus"))


def _cpus(found: Mapping[str, Any]) -> int | None:
    return whole((found.get("cpu") or {}).get("number_of_cores"))


def _gigabytes(found: Any) -> int | None:
    return whole(found.get("size_in_gigabytes")) if isinstance(found, Mapping) else None


def _memory_of_one(found: Mapping[str, Any]) -> float | None:
    """Return the memory of one card in GB; Verda tells that of all together."""
    total, gpus = _gigabytes(found.get("gpu_memory")), _gpus(found)
    return total / gpus if total and gpus else None
