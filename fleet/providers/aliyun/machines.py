"""ECS instances as machines: states and locks, GPU model, what a stop saves. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.providers.aliyun.shape import objects, wrapped
from fleet.providers.base import Billing, Machine, MachineStatus, status_of
from fleet.providers.gpu_models import GpuModel, gpu_model
from fleet.providers.reading import text, time, whole
from fleet.providers.regions import global_id

_S = MachineStatus
STATUS: Final[Mapping[str, MachineStatus]] = {
    "Pending": _S.PROVISIONING,
    "Starting": _S.PROVISIONING,
    "Running": _S.RUNNING,
    "Stopping": _S.STOPPING,
    "Stopped": _S.STOPPED,
}
# The lock of a spot instance that is about to be taken back; every other lock is arrears, security, expiry or a refund.
RECYCLING: Final = "Recycling"
STOP_SAVES: Final = {"StopCharging": True, "KeepCharging": False, "Not-applicable": False}
# The name of the card leaves its memory open for these families; all others have one size.
FAMILY_MEMORY_GIB: Final = {
    "ecs.gn6v": 16,
    "ecs.ebmgn6v": 16,
    "ecs.gn6e": 32,
    "ecs.ebmgn6e": 32,
    "ecs.gn7": 40,
    "ecs.ebmgn7": 40,
    "ecs.gn7e": 80,
    "ecs.ebmgn7e": 80,
}
MIB: Final = 1024**2


def machine_of(instance: Mapping[str, Any], region: str) -> Machine:
    """Return an instance of DescribeInstances as a machine. region: the one that was asked."""
    model = _model(instance)
    status, raw_status = _status(instance)
    is_prepaid = text(instance, "InstanceChargeType") == "PrePaid"
    memory_mib = whole(instance.get("Memory"))
    address = _address(instance)
    return Machine(
        external_id=global_id(region, text(instance, "InstanceId")),
        name=text(instance, "InstanceName"),
        status=status,
        raw_status=raw_status,
        gpu_model=model.name if model else "",
        raw_gpu=text(instance, "GPUSpec"),
        gpu_count=whole(instance.get("GPUAmount")),
        gpu_memory_bytes=model.memory_bytes if model else None,
        cpu_count=whole(instance.get("Cpu")),
        memory_bytes=memory_mib * MIB if memory_mib else None,
        region=text(instance, "ZoneId") or region,
        billing=_billing(instance),
        address=address,
        ssh_port=22 if address else None,
        created_at=time(instance.get("CreationTime")),
        # Pay-as-you-go carries a date in the far future there.
        renews_at=time(instance.get("ExpiredTime")) if is_prepaid else None,
        is_stop_saving=STOP_SAVES.get(text(instance, "StoppedMode")) if text(instance, "Status") == "Stopped" else None,
        details=_details(instance),
    )


def locks(instance: Mapping[str, Any]) -> list[str]:
    """Return why the provider has locked an instance; [] when it has not."""
    found = objects(instance, "OperationLocks", "LockReason")
    return [reason for each in found if (reason := text(each, "LockReason"))]


def _status(instance: Mapping[str, Any]) -> tuple[MachineStatus, str]:
    """Return our word and the provider's, to which the locks are added: they come beside the status, not in its place."""
    raw, reasons = text(instance, "Status"), locks(instance)
    if not reasons:
        return status_of(raw, STATUS), raw
    status = _S.PREEMPTED if RECYCLING in reasons else _S.LOCKED
    return status, f"{raw} ({', '.join(reasons)})"


def _billing(instance: Mapping[str, Any]) -> Billing:
    """Return how an instance is paid. The API does not tell a subscription's term; most run by the month."""
    if text(instance, "InstanceChargeType") == "PrePaid":
        return Billing.MONTHLY
    return Billing.SPOT if text(instance, "SpotStrategy") not in {"", "NoSpot"} else Billing.HOURLY


def _model(instance: Mapping[str, Any]) -> GpuModel | None:
    family = text(instance, "InstanceTypeFamily") or text(instance, "InstanceType").rpartition(".")[0].partition("-")[0]
    return gpu_model(text(instance, "GPUSpec"), FAMILY_MEMORY_GIB.get(family))


def _address(instance: Mapping[str, Any]) -> str:
    """Return the address by which the machine is reached: elastic, public, else private."""
    candidates = [
        text(instance.get("EipAddress"), "IpAddress"),
        *wrapped(instance, "PublicIpAddress", "IpAddress"),
        *wrapped(instance.get("VpcAttributes"), "PrivateIpAddress", "IpAddress"),
        *wrapped(instance, "InnerIpAddress", "IpAddress"),
    ]
    return next((each for each in candidates if isinstance(each, str) and each), "")


def _details(instance: Mapping[str, Any]) -> dict[str, Any]:
    facts = {
        "instance_type": text(instance, "InstanceType"),
        "charge_type": text(instance, "InstanceChargeType"),
        "spot_strategy": text(instance, "SpotStrategy"),
        "stopped_mode": text(instance, "StoppedMode"),
        "image": text(instance, "ImageId"),
        "locks": ", ".join(locks(instance)),
        "auto_release_at": text(instance, "AutoReleaseTime"),
        "is_deletion_protected": instance.get("DeletionProtection") is True,
    }
    return {name: value for name, value in facts.items() if value not in {"", None}}
