"""CVM instances as machines: states, restrictions, GPU model, what a stop saves. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.providers.base import Billing, Machine, MachineStatus, status_of
from fleet.providers.gpu_models import GIB, GpuModel, gpu_model
from fleet.providers.http import sentence
from fleet.providers.reading import number, text, time, whole
from fleet.providers.regions import global_id

_S = MachineStatus
STATUS: Final[Mapping[str, MachineStatus]] = {
    "PENDING": _S.PROVISIONING,
    "LAUNCH_FAILED": _S.FAILED,
    "RUNNING": _S.RUNNING,
    "STOPPED": _S.STOPPED,
    "STARTING": _S.PROVISIONING,
    "STOPPING": _S.STOPPING,
    "REBOOTING": _S.PROVISIONING,
    # Stopped for good and waiting to be destroyed; it cannot be started again.
    "SHUTDOWN": _S.TERMINATING,
    "TERMINATING": _S.TERMINATING,
    "ENTER_RESCUE_MODE": _S.PROVISIONING,
    "RESCUE_MODE": _S.PROVISIONING,
    "EXIT_RESCUE_MODE": _S.PROVISIONING,
    # A live migration does not interrupt the machine.
    "ENTER_SERVICE_LIVE_MIGRATE": _S.RUNNING,
    "SERVICE_LIVE_MIGRATE": _S.RUNNING,
    "EXIT_SERVICE_LIVE_MIGRATE": _S.RUNNING,
}
BILLING: Final = {
    "PREPAID": Billing.MONTHLY,  # the API does not tell the term; it renews by the month
    "POSTPAID_BY_HOUR": Billing.HOURLY,
    "SPOTPAID": Billing.SPOT,
    # What is paid is the dedicated host or cluster, and not the machine on it.
    "CDHPAID": Billing.OWNED,
    "CDCPAID": Billing.OWNED,
}
STOP_SAVES: Final = {"STOP_CHARGING": True, "KEEP_CHARGING": False, "NOT_APPLICABLE": False}
ENDING: Final = frozenset({"SHUTDOWN", "TERMINATING"})
RETURNED: Final = "MANMADE"  # by the customer, into the recycle bin
# The cards of families, where the API names none: (name, GiB of one card).
FAMILY_GPU: Final[Mapping[str, tuple[str, int]]] = {
    "GN7": ("T4", 16),
    "GN8": ("P40", 24),
    "GN10X": ("V100", 32),
    "GN10Xp": ("V100", 32),
    "GT4": ("A100", 40),
}


def machine_of(instance: Mapping[str, Any], region: str) -> Machine:
    """Return an instance of DescribeInstances as a machine. region: the one that was asked."""
    gpu = instance.get("GPUInfo")
    raw_gpu = text(gpu, "GPUType")
    cards = whole(gpu.get("GPUCount")) if isinstance(gpu, Mapping) else 0
    model = card_of(raw_gpu, text(instance, "InstanceType")) if gpu else None
    status, raw_status = _status(instance)
    memory_gib = whole(instance.get("Memory"))
    address = _address(instance)
    placement = instance.get("Placement")
    is_stopped = text(instance, "InstanceState") == "STOPPED"
    return Machine(
        external_id=global_id(region, text(instance, "InstanceId")),
        name=text(instance, "InstanceName"),
        status=status,
        raw_status=raw_status,
        gpu_model=model.name if model else "",
        raw_gpu=raw_gpu,
        gpu_count=cards,
        gpu_memory_bytes=model.memory_bytes if model else None,
        cpu_count=whole(instance.get("CPU")),
        memory_bytes=memory_gib * GIB if memory_gib else None,
        region=text(placement, "Zone") or region,
        billing=BILLING.get(text(instance, "InstanceChargeType"), Billing.HOURLY),
        address=address,
        ssh_port=22 if address else None,
        created_at=time(instance.get("CreatedTime")),
        renews_at=time(instance.get("ExpiredTime")) if text(instance, "InstanceChargeType") == "PREPAID" else None,
        is_stop_saving=STOP_SAVES.get(text(instance, "StopChargingMode")) if is_stopped else None,
        details=_details(instance),
    )


def card_of(raw_gpu: str, instance_type: str, memory_gib: float | None = None) -> GpuModel | None:
    """Return the model of the cards: as the API names it, else what the family of the type has."""
    name, usual_gib = FAMILY_GPU.get(instance_type.partition(".")[0], ("", None))
    return gpu_model(raw_gpu or name, memory_gib or usual_gib)


def _status(instance: Mapping[str, Any]) -> tuple[MachineStatus, str]:
    """Return our word and the provider's, to which restrictions are added: they come beside the state."""
    raw = text(instance, "InstanceState")
    marks = [
        mark
        for name, harmless in (("RestrictState", "NORMAL"), ("IsolatedSource", "NOTISOLATED"))
        if (mark := text(instance, name)) and mark != harmless
    ]
    shown = f"{raw} ({', '.join(marks)})" if marks else raw
    if RETURNED in marks:
        return _S.TERMINATING, shown
    if marks:
        return _S.LOCKED, shown
    return (_S.PREEMPTED, shown) if _is_taken_back(instance, raw) else (status_of(raw, STATUS), shown)


def _is_taken_back(instance: Mapping[str, Any], raw: str) -> bool:
    """Say whether a spot instance is going although nobody asked for it: the last operation is none of ending it."""
    is_spot = text(instance, "InstanceChargeType") == "SPOTPAID"
    return is_spot and raw in ENDING and text(instance, "LatestOperation") != "TerminateInstances"


def _address(instance: Mapping[str, Any]) -> str:
    for name in ("PublicIpAddresses", "PrivateIpAddresses"):
        found = instance.get(name)
        if isinstance(found, list) and found and isinstance(found[0], str):
            return found[0].strip()
    return ""


def _details(instance: Mapping[str, Any]) -> dict[str, Any]:
    gpu = instance.get("GPUInfo")
    share = number(gpu.get("GPUCount")) if isinstance(gpu, Mapping) else None
    facts = {
        "instance_type": text(instance, "InstanceType"),
        "charge_type": text(instance, "InstanceChargeType"),
        "renewal": text(instance, "RenewFlag"),
        "stop_charging_mode": text(instance, "StopChargingMode"),
        "image": text(instance, "ImageId"),
        "latest_operation": " ".join(
            (text(instance, "LatestOperation"), text(instance, "LatestOperationState"))
        ).strip(),
        "latest_error": sentence(text(instance, "LatestOperationErrorMsg")),
        "gpu_share": str(share) if share is not None and share % 1 else "",
        "is_deletion_protected": instance.get("DisableApiTermination") is True,
    }
    return {name: value for name, value in facts.items() if value != ""}
