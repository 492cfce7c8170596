"""Lambda's instances as machines: states, whole cents per hour for the whole instance, GPU names out of descriptions."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.providers.base import (
    AccountCheck,
    Billing,
    CanOrder,
    CanReboot,
    Field,
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
from fleet.providers.gpu_models import GIB, gpu_model
from fleet.providers.lambda_cloud.client import LambdaClient
from fleet.providers.order_values import script_text
from fleet.providers.reading import money, text, whole
from fleet.reasons import Reason

_S = MachineStatus
STATUS: Final[Mapping[str, MachineStatus]] = {
    "booting": _S.PROVISIONING,
    "active": _S.RUNNING,
    "unhealthy": _S.FAILED,
    "preempted": _S.PREEMPTED,
    "terminating": _S.TERMINATING,
    "terminated": _S.GONE,
}
USER_DATA_LIMIT: Final = 1_000_000  # "cannot exceed 1MB", read in the narrower sense
CENTS: Final = 100


class Lambda(Provider, CanOrder, CanReboot):
    """On-demand instances of one Lambda account. Lambda stops nothing: a machine runs and is billed until it is ended."""

    kind: ClassVar[str] = "lambda"
    label = "Lambda Cloud"
    currency: ClassVar[str] = "USD"
    end_keeps = _("File systems stay and go on costing.")
    docs_url = "https://docs.lambda.ai/public-cloud/cloud-api/"
    credential_fields = (
        Field(
            name="api_key",
            label=_("API key"),
            is_secret=True,
            help=_("Lambda Cloud console → API keys. A key may do everything that its account may."),
        ),
    )
    order_fields = (
        Field(
            name="ssh_key",
            label=_("SSH key"),
            max_length=64,
            help=_("The name of a key in the account. Lambda launches nothing without exactly one."),
        ),
        Field(
            name="image_family",
            label=_("Image family"),
            is_required=False,
            help=_("Empty means Lambda's newest Lambda Stack image."),
        ),
    )

    def _client(self) -> LambdaClient:
        return LambdaClient(self.credentials["api_key"], account=self.account, transport=self.transport)

    def check(self) -> AccountCheck:
        """See Provider. Keys have no scopes, so a key that lists may also order; that is not tried."""
        self._client().instances()
        return AccountCheck(permissions={"list": True, "order": None})

    def machines(self) -> list[Machine]:
        """See Provider."""
        return [_machine(instance) for instance in self._client().instances()]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider."""
        try:
            found = _machine(self._client().instance(external_id))
        except NotThere:
            return None
        return None if found.status == _S.GONE else found

    def offers(self) -> list[OfferFound]:
        """See HasOffers: one for each type and region that has it free; one without a region where none has."""
        return [offer for entry in self._client().instance_types() for offer in _offers(entry)]

    def order_choices(self, name: str) -> Mapping[str, str]:
        """See CanOrder: the account's SSH keys, and the families of images."""
        if name == "ssh_key":
            return {text(key, "name"): text(key, "name") for key in self._client().ssh_keys() if text(key, "name")}
        if name == "image_family":
            images = self._client().images()
            return {text(image, "family"): text(image, "name") for image in images if text(image, "family")}
        return {}

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. There is no key against doing it twice: the name is searched for after a lost answer."""
        if not order.region:
            raise Refused(gettext("No region of this provider has such a machine free."), reason=Reason.NO_CAPACITY)
        body: dict[str, Any] = {
            "region_name": order.region,
            "instance_type_name": order.details["instance_type"],
            "ssh_key_names": [order.options["ssh_key"]],
            "name": order.name,
            "user_data": script_text(order.startup_script, limit_bytes=USER_DATA_LIMIT),
        }
        if order.options.get("image_family"):
            body["image"] = {"family": order.options["image_family"]}
        try:
            return self._client().launch(body)
        except NotUnderstood as error:
            raise OutcomeUnknown(error.message) from error
        except NotThere as error:  # the type, the region, the image or the SSH key; nothing was launched
            raise Refused(error.message, reason=Reason.REQUEST_REFUSED, raw_code=error.raw_code) from error

    def terminate(self, external_id: str) -> None:
        """See CanOrder: the instance and its disk. File systems stay; they are no part of a machine."""
        try:
            self._client().act("terminate", external_id)
        except NotThere:
            return

    def reboot(self, external_id: str) -> None:
        """See CanReboot."""
        self._client().act("restart", external_id)

    def stop_effect(self, billing: Billing) -> StopEffect:  # noqa: ARG002 (the same for all)
        """See Provider."""
        return StopEffect(
            saves_compute=False,
            keeps_billing=("everything",),
            note=_("Lambda cannot stop a machine: it costs the same, idle or not, until it is ended."),
        )


def _machine(instance: Mapping[str, Any]) -> Machine:
    kind = instance.get("instance_type") or {}
    specs = kind.get("specs") or {}
    model = gpu_model(text(kind, "gpu_description"))
    memory_gib = whole(specs.get("memory_gib"))
    return Machine(
        external_id=text(instance, "id"),
        name=text(instance, "name"),
        status=status_of(text(instance, "status"), STATUS),
        raw_status=text(instance, "status"),
        gpu_model=model.name if model else "",
        raw_gpu=text(kind, "gpu_description"),
        gpu_count=whole(specs.get("gpus")),
        gpu_memory_bytes=model.memory_bytes if model else None,
        cpu_count=whole(specs.get("vcpus")),
        memory_bytes=memory_gib * GIB if memory_gib else None,
        region=text(instance.get("region"), "name"),
        price_per_hour=_price(kind),
        address=text(instance, "ip"),
        ssh_port=22 if text(instance, "ip") else None,
        actions=_actions(instance.get("actions")),
        details={
            "instance_type": text(kind, "name"),
            "hostname": text(instance, "hostname"),
            "private_address": text(instance, "private_ip"),
            "file_systems": [str(name) for name in instance.get("file_system_names") or []],
        },
    )


def _price(kind: Mapping[str, Any]) -> Any:
    price = money(kind.get("price_cents_per_hour"), Lambda.currency, divisor=CENTS)
    return price if price is not None and price.amount > 0 else None


def _actions(found: Any) -> frozenset[str] | None:
    """Return what Lambda says it would do now, None where it does not say."""
    if not isinstance(found, Mapping) or not found:
        return None
    return frozenset(
        name for name, details in found.items() if isinstance(details, Mapping) and details.get("available") is True
    )


def _offers(entry: Mapping[str, Any]) -> list[OfferFound]:
    """Return the offers of one type; none for a type without a GPU."""
    kind = entry.get("instance_type") or {}
    specs = kind.get("specs") or {}
    count = whole(specs.get("gpus"))
    name = text(kind, "name")
    if not count or not name:
        return []
    model = gpu_model(text(kind, "gpu_description"))
    memory_gib, disk_gib = whole(specs.get("memory_gib")), whole(specs.get("storage_gib"))
    regions = [text(region, "name") for region in entry.get("regions_with_capacity_available") or []]
    return [
        OfferFound(
            key=f"{name}/{region}",
            gpu_model=model.name if model else "",
            raw_gpu=text(kind, "gpu_description") or name,
            gpu_count=count,
            gpu_memory_bytes=model.memory_bytes if model else None,
            region=region,
            price_per_hour=_price(kind),
            stock=Stock.MEDIUM if region else Stock.NONE,  # Lambda tells that there is one, not how many
            cpu_count=whole(specs.get("vcpus")),
            memory_bytes=memory_gib * GIB if memory_gib else None,
            disk_bytes=disk_gib * GIB if disk_gib else None,
            details={"instance_type": name},
        )
        for region in regions or [""]
    ]
