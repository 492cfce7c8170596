"""Compshare's instances and images as the panel's: states, charge types, yuan for the whole machine, where SSH answers."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fleet.providers.base import TERM_HOURS, Billing, Machine, MachineStatus, Snapshot, status_of
from fleet.providers.compshare.client import objects
from fleet.providers.gpu_models import GIB, gpu_model
from fleet.providers.reading import money, text, time, whole
from fleet.providers.regions import global_id
from panel.core.money import Money

CURRENCY: Final = "CNY"
MIB: Final = 1024**2
_S = MachineStatus
STATUS: Final[Mapping[str, MachineStatus]] = {
    "Initializing": _S.PROVISIONING,
    "Install": _S.PROVISIONING,
    "Starting": _S.PROVISIONING,
    "Rebooting": _S.PROVISIONING,
    "Resizing": _S.PROVISIONING,
    "Running": _S.RUNNING,
    "Stopping": _S.STOPPING,
    "Stopped": _S.STOPPED,
    "Install Fail": _S.FAILED,
}
BILLINGS: Final[Mapping[str, Billing]] = {
    "Postpay": Billing.HOURLY,
    "Dynamic": Billing.HOURLY,
    "Spot": Billing.SPOT,
    "Day": Billing.DAILY,
    "Month": Billing.MONTHLY,
    "Year": Billing.YEARLY,
}
_TRUE: Final = frozenset({"true", "yes", "1"})
_SSH: Final = re.compile(r"@([A-Za-z0-9.-]+)")
_SSH_PORT: Final = re.compile(r"-p\s*(\d+)")


def region_of(host: Mapping[str, Any], asked: str) -> str:
    """Return the region of an instance: a zone is named after its region. asked: the region whose list shows it."""
    zone = text(host, "Zone")
    return asked if not zone or zone.startswith(f"{asked}-") else zone.rpartition("-")[0]


def machine_of(host: Mapping[str, Any], region: str) -> Machine:
    """Return a machine from its entry in the list. Passwords and addresses of notebooks, which stand there, are not kept."""
    charge_type, billing = text(host, "ChargeType"), billing_of(host)
    memory_gib = whole(_member(host, "GraphicsMemory", "Value"))
    model = gpu_model(text(host, "GpuType"), memory_gib)
    status = _status(host, billing)
    address, port = _ssh(host)
    memory_mib = whole(host.get("Memory"))
    return Machine(
        external_id=global_id(region, text(host, "UHostId")),
        name=text(host, "Name"),
        status=status,
        raw_status=text(host, "State"),
        gpu_model=model.name if model else "",
        raw_gpu=text(host, "GpuType"),
        gpu_count=whole(host.get("GPU")),
        gpu_memory_bytes=memory_gib * GIB if memory_gib else (model.memory_bytes if model else None),
        cpu_count=whole(host.get("CPU")),
        memory_bytes=memory_mib * MIB if memory_mib else None,
        region=text(host, "Zone"),
        billing=billing,
        price_per_hour=_price(host, billing),
        price_stopped_per_hour=_price_stopped(host),
        address=address,
        ssh_port=port,
        created_at=time(whole(host.get("CreateTime"))),
        renews_at=time(whole(host.get("ExpireTime"))) if billing in TERM_HOURS or charge_type == "Dynamic" else None,
        is_stop_saving=_is_stop_saving(host, status, billing),
        details={
            "charge_type": charge_type,
            "instance_type": text(host, "InstanceType"),
            "image": text(host, "CompShareImageId"),
            "auto_renew": text(host, "AutoRenew"),
            "instance_price": text(host, "InstancePrice"),
            "image_price": text(host, "CompShareImagePrice"),
        },
    )


def image_of(image: Mapping[str, Any]) -> Snapshot:
    """Return an image that the account has made. The vendor gives sizes in MB."""
    size = whole(image.get("Size"))
    status = text(image, "Status")
    return Snapshot(
        external_id=text(image, "CompShareImageId"),
        name=text(image, "Name"),
        status=status,
        is_ready=status == "Available",
        created_at=time(whole(image.get("CreateTime"))),
        size_bytes=size * MIB if size else None,
    )


def billing_of(host: Mapping[str, Any]) -> Billing:
    """Return how a machine is paid. A spot machine says Postpay, or nothing, and has a sign of its own beside it."""
    if _is_true(host.get("IsSpot")):
        return Billing.SPOT
    return BILLINGS.get(text(host, "ChargeType"), Billing.HOURLY)


def _status(host: Mapping[str, Any], billing: Billing) -> MachineStatus:
    status = status_of(text(host, "State"), STATUS)
    if status == _S.STOPPED and text(host, "IsExpire") == "Yes":
        return _S.LOCKED
    if status == _S.STOPPED and billing == Billing.SPOT:
        return _S.PREEMPTED  # people cannot stop a spot machine, so it was taken back
    return status


def _is_stop_saving(host: Mapping[str, Any], status: MachineStatus, billing: Billing) -> bool | None:
    """Say what the vendor says of the bill of a machine that is off; None where it does not say.

    One that was taken back costs the time that it ran (compshare.cn/docs/operation/gpuspot).
    """
    if status == _S.PREEMPTED:
        return True
    if status != _S.STOPPED:
        return None
    if billing in TERM_HOURS:
        return False
    told = host.get("PostPayShutdown")
    return told if text(host, "ChargeType") == "Postpay" and isinstance(told, bool) else None


def _price(host: Mapping[str, Any], billing: Billing) -> Money | None:
    """Return the price of an hour: instance, its image, and its disks, which have charge types of their own.

    The vendor gives the image's price for one GPU, so that of several is unknown where an image costs something.
    """
    instance = hourly(money(host.get("InstancePrice"), CURRENCY), billing)
    if instance is None or not instance.amount or not _has_known_charge(host, billing):
        return None
    image = money(host.get("CompShareImagePrice"), CURRENCY)
    if image is not None and image.amount:
        if whole(host.get("GPU")) != 1 or billing in TERM_HOURS:
            return None
        instance += image
    disks = objects(host, "DiskPriceInfo")
    cost = _sum(disks)
    if cost is None:
        return None if disks else instance
    return instance + cost


def _price_stopped(host: Mapping[str, Any]) -> Money | None:
    """Return what an hour costs while the machine is off, where the vendor lists what goes on costing."""
    return _sum(objects(host, "PostPayPowerOffBillingResource"))


def _sum(disks: Iterable[Mapping[str, Any]]) -> Money | None:
    """Return the sum of prices by hour; None when there are none or one of them is not understood."""
    found = [
        hourly(money(disk.get("Price"), CURRENCY), BILLINGS.get(text(disk, "ChargeType"), Billing.OWNED))
        for disk in disks
    ]
    known = [price for price in found if price is not None]
    if not known or len(known) < len(found):
        return None
    return sum(known[1:], known[0])


def _has_known_charge(host: Mapping[str, Any], billing: Billing) -> bool:
    return billing == Billing.SPOT or text(host, "ChargeType") in BILLINGS


def hourly(price: Money | None, billing: Billing) -> Money | None:
    """Return the price of a charge type's term as the price of an hour; None for what has no term."""
    if price is None or billing == Billing.OWNED:
        return None
    return price / TERM_HOURS[billing] if billing in TERM_HOURS else price


def _ssh(host: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return where SSH answers: the command of a running machine, else its public address. A private one is of no use."""
    command = text(host, "SshLoginCommand")
    if found := _SSH.search(command):
        port = _SSH_PORT.search(command)
        return found[1], int(port[1]) if port else 22
    public = (entry for entry in objects(host, "IPSet") if text(entry, "Type") in {"Bgp", "Internation"})
    return next((text(entry, "IP") for entry in public), ""), None


def _member(body: Mapping[str, Any], key: str, inner: str) -> Any:
    found = body.get(key)
    return found.get(inner) if isinstance(found, Mapping) else None


def _is_true(value: Any) -> bool:
    return str(value).strip().lower() in _TRUE
