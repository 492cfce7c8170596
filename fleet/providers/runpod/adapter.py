"""RunPod's pods as machines: states, money per whole pod, GPU names."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

from django.utils.translation import gettext_lazy as _

from fleet.providers.base import (
    AccountCheck,
    Billing,
    CanOrder,
    CanReboot,
    CanStop,
    Charge,
    Field,
    HasBilling,
    Machine,
    MachineOrder,
    MachineStatus,
    OfferFound,
    Provider,
    Stock,
    StopEffect,
    status_of,
)
from fleet.providers.errors import NotThere, NotUnderstood, OutcomeUnknown, Refused
from fleet.providers.gpu_models import gpu_model
from fleet.providers.order_values import whole_text
from fleet.providers.permissions import tried
from fleet.providers.reading import money, text, time, whole
from fleet.providers.runpod.client import RunPodClient

_S = MachineStatus
STATUS: Final[Mapping[str, MachineStatus]] = {
    "PROVISIONING": _S.PROVISIONING,
    "STARTING": _S.PROVISIONING,
    "RUNNING": _S.RUNNING,
    "EXITED": _S.STOPPED,
    "ERROR": _S.FAILED,
    "TERMINATED": _S.GONE,
}
STOCK: Final = {"NONE": Stock.NONE, "LOW": Stock.LOW, "MEDIUM": Stock.MEDIUM, "HIGH": Stock.HIGH}
CLOUDS: Final = {"SECURE": "secure", "COMMUNITY": "community"}
COUNTS: Final = (1, 2, 4, 8)
DEFAULT_IMAGE: Final = "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"
# The script comes as a variable, because a pod has no user data; what the image would start follows it.
START: Final = (
    "bash -c 'echo \"$STARTUP_SCRIPT\" | base64 -d | bash; [ -x /start.sh ] && exec /start.sh; sleep infinity'"
)


class RunPod(Provider, CanOrder, CanReboot, CanStop, HasBilling):
    """Pods of one RunPod account. Spot is gone from API v2, so it is not offered."""

    kind: ClassVar[str] = "runpod"
    label = "RunPod"
    currency: ClassVar[str] = "USD"
    end_keeps = _("Network volumes are detached and go on costing.")
    docs_url = "https://docs.runpod.io/api-reference-v2/overview"
    credential_fields = (
        Field(
            name="api_key",
            label=_("API key"),
            is_secret=True,
            help=_("Settings → API keys. It needs read and write access to pods and read access to billing."),
        ),
    )
    order_fields = (
        Field(name="image", label=_("Container image"), default=DEFAULT_IMAGE),
        Field(name="disk_gb", label=_("Container disk in GB"), default="50", max_length=5),
        Field(name="volume_gb", label=_("Volume at /workspace in GB"), default="0", max_length=5),
    )

    def _client(self) -> RunPodClient:
        return RunPodClient(self.credentials["api_key"], account=self.account, transport=self.transport)

    def check(self) -> AccountCheck:
        """See Provider. Reading pods and billing are tried; writing cannot be without doing it."""
        client = self._client()
        now = datetime.now().astimezone()
        return AccountCheck(
            permissions={
                "list": tried(client.pods)[1],
                "billing": tried(lambda: client.pod_billing(now, now))[1],
                "order": None,
            }
        )

    def machines(self) -> list[Machine]:
        """See Provider."""
        return [_machine(pod) for pod in self._client().pods()]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider."""
        try:
            found = _machine(self._client().pod(external_id))
        except NotThere:
            return None
        return None if found.status == _S.GONE else found

    def offers(self) -> list[OfferFound]:
        """See HasOffers: one for each type, cloud, and power-of-two count up to the largest machine.

        How many are free is told for one cloud and one count at a time.
        """
        client = self._client()
        return [
            offer
            for cloud in CLOUDS
            for count in COUNTS
            for gpu in client.gpus(cloud=cloud, count=count)
            if (offer := _offer(gpu, cloud, count)) is not None
        ]

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. There is no key against doing it twice: the name is searched for after a lost answer."""
        body: dict[str, Any] = {
            "name": order.name,
            "cloud": order.details["cloud"],
            "gpu": {"id": order.details["gpu_id"], "count": order.gpu_count},
            "image": order.options["image"],
            "disk": int(whole_text(order.options["disk_gb"])),
            "ports": ["22/tcp", "8000/http"],
            "startSsh": True,
            "env": {"STARTUP_SCRIPT": base64.b64encode(order.startup_script.encode()).decode()},
            "args": START,
        }
        if order.region:
            body["dataCenterIds"] = [order.region]
        if volume_gb := int(whole_text(order.options["volume_gb"])):
            body["mounts"] = {"persistent": {"size": volume_gb, "path": "/workspace"}}
        try:
            return str(self._client().create_pod(body)["id"])
        except NotUnderstood as error:
            raise OutcomeUnknown(error.message) from error
        except NotThere as error:  # something that the order names; nothing was created
            raise Refused(error.message, raw_code=error.raw_code) from error

    def terminate(self, external_id: str) -> None:
        """See CanOrder: the pod and its volume."""
        try:
            self._client().delete_pod(external_id)
        except NotThere:
            return

    def start(self, external_id: str) -> None:
        """See CanStop. A stopped pod is tied to one host, whose GPUs may be taken."""
        self._client().act(external_id, "start")

    def stop(self, external_id: str) -> None:
        """See CanStop."""
        self._client().act(external_id, "stop")

    def reboot(self, external_id: str) -> None:
        """See CanReboot."""
        self._client().act(external_id, "restart")

    def stop_effect(self, billing: Billing) -> StopEffect:  # noqa: ARG002 (the same for all)
        """See Provider."""
        return StopEffect(
            saves_compute=True,
            keeps_billing=("disk",),
            note=_(
                "The volume goes on costing, at twice its price; the GPUs are not kept, so starting again may fail."
            ),
        )

    def charges(self, *, start: datetime, end: datetime) -> list[Charge]:
        """See HasBilling: a line for each pod and day."""
        return [
            Charge(
                external_id=text(record, "podId"),
                start=time(record.get("startTime")) or start,
                end=time(record.get("endTime")) or end,
                amount=amount,
            )
            for record in self._client().pod_billing(start, end)
            if (amount := money(record.get("totalAmount"), self.currency)) is not None
        ]


def _machine(pod: Mapping[str, Any]) -> Machine:
    gpu = pod.get("gpu") or {}
    raw_gpu = text(gpu, "id")
    model = gpu_model(raw_gpu)
    status = status_of(text(pod, "status"), STATUS)
    direct = (pod.get("ssh") or {}).get("direct") or {}
    cost = money(pod.get("cost"), RunPod.currency)
    return Machine(
        external_id=text(pod, "id"),
        name=text(pod, "name"),
        status=status,
        raw_status=text(pod, "status"),
        gpu_model=model.name if model else "",
        raw_gpu=raw_gpu,
        gpu_count=whole(gpu.get("count")),
        gpu_memory_bytes=model.memory_bytes if model else None,
        region=text(pod, "dataCenterId"),
        price_per_hour=cost
        if cost is not None and cost.amount
        else None,  # 0.0 while stopped says nothing of the price
        address=text(direct, "host"),
        ssh_port=whole(direct.get("port")),
        created_at=time(pod.get("createdAt")),
        is_stop_saving=True if status == _S.STOPPED else None,
        actions=frozenset(str(action) for action in pod["actions"]) if isinstance(pod.get("actions"), list) else None,
        details={"cloud": text(pod, "cloud"), "image": text(pod, "image"), "disk_gb": whole(pod.get("disk"))},
    )


def _offer(gpu: Mapping[str, Any], cloud: str, count: int) -> OfferFound | None:
    """Return the offer of one type in one cloud; None where the cloud has no machine with that many."""
    key = CLOUDS[cloud]
    if not gpu.get(key) or count > (whole((gpu.get("maxCount") or {}).get(key)) or 0):
        return None
    price = money((gpu.get("price") or {}).get(key), RunPod.currency)
    memory_gb = whole(gpu.get("memory"))
    model = gpu_model(text(gpu, "id"), memory_gb) or gpu_model(text(gpu, "name"), memory_gb)
    return OfferFound(
        key=f"{text(gpu, 'id')}/{cloud}/{count}",
        gpu_model=model.name if model else "",
        raw_gpu=text(gpu, "id"),
        gpu_count=count,
        gpu_memory_bytes=memory_gb * 1024**3 if memory_gb else None,
        price_per_hour=price * count if price is not None and price.amount else None,
        stock=STOCK.get(text(gpu, "availability"), Stock.UNKNOWN),
        details={"gpu_id": text(gpu, "id"), "cloud": cloud},
    )
