"""AutoDL's container instances Pro as machines: states, money in thousandths of a yuan, GPU specs."""

import base64
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from django.utils.translation import gettext_lazy as _

from fleet.providers.autodl.catalogue import COUNTS, DEFAULT_IMAGE, IMAGES, REGIONS, model_of, specs_of
from fleet.providers.autodl.client import AutoDlClient
from fleet.providers.base import (
    PREPAID,
    AccountCheck,
    Billing,
    CanOrder,
    CanStop,
    Field,
    HasSnapshots,
    Machine,
    MachineOrder,
    MachineStatus,
    OfferFound,
    Provider,
    Snapshot,
    StopEffect,
    status_of,
)
from fleet.providers.errors import NotThere, Refused
from fleet.providers.reading import money, text, time, whole
from panel.core.money import Money

_S = MachineStatus
STATUS: Final[Mapping[str, MachineStatus]] = {
    "creating": _S.PROVISIONING,
    "created": _S.PROVISIONING,
    "starting": _S.PROVISIONING,
    "oss_merged": _S.PROVISIONING,
    "running": _S.RUNNING,
    "shutting_down": _S.STOPPING,
    "shutdown": _S.STOPPED,
    "failed": _S.FAILED,
    "releasing": _S.TERMINATING,
    "released": _S.GONE,
}
# Only `payg` can be ordered by API; the other words are of machines that were taken in the console.
BILLINGS: Final = {
    "payg": Billing.HOURLY,
    "daily": Billing.DAILY,
    "weekly": Billing.WEEKLY,
    "monthly": Billing.MONTHLY,
    "yearly": Billing.YEARLY,
}
PUBLIC: Final = "https://api.autodl.com"
PRIVATE: Final = "https://private.autodl.com"
MILLI: Final = 1000


class AutoDl(Provider, CanOrder, CanStop, HasSnapshots):
    """Instances Pro of one AutoDL account. Ordinary instances have no API; there is no restart in it either."""

    kind: ClassVar[str] = "autodl"
    label = "AutoDL"
    currency: ClassVar[str] = "CNY"
    docs_url = "https://www.autodl.com/docs/instance_pro_api/"
    usual_boot: ClassVar[timedelta] = timedelta(minutes=3)
    credential_fields = (
        Field(
            name="token",
            label=_("Developer token"),
            is_secret=True,
            help=_("Console → Account → Settings → Developer token. Ordering needs an account with verified identity."),
        ),
    )
    option_fields = (
        Field(
            name="base_url",
            label=_("API address"),
            default=PUBLIC,
            choices={PUBLIC: _("Public cloud"), PRIVATE: _("Private cloud")},
        ),
        Field(
            name="gpu_specs",
            label=_("Further GPU specs"),
            is_required=False,
            help=_(
                "The API lists no specs. New ones as id=model with commas between, "
                "for example v-24g=RTX 4090 24GB; the id stands on the page where instances are created."
            ),
        ),
    )
    order_fields = (
        Field(name="image", label=_("Image"), default=DEFAULT_IMAGE),
        Field(
            name="region",
            label=_("Region"),
            is_required=False,
            choices={"": _("Any (most likely to succeed)"), **REGIONS},
        ),
        Field(name="cuda_from", label=_("CUDA of the driver, at least (118 for 11.8)"), default="118", max_length=3),
        Field(name="disk_gb", label=_("System disk enlarged by GB"), default="0", max_length=3),
    )

    def _client(self) -> AutoDlClient:
        return AutoDlClient(
            self.credentials["token"],
            base_url=self.options["base_url"],
            account=self.account,
            transport=self.transport,
        )

    def _specs(self) -> dict[str, str]:
        return specs_of(self.options["gpu_specs"])

    def check(self) -> AccountCheck:
        """See Provider. Whether the account may order (verified identity) is told by ordering alone."""
        client = self._client()
        client.instances()
        try:
            wallet: Mapping[str, Any] = client.balance()
        except NotThere:  # a private cloud has its own accounts
            wallet = {}
        return AccountCheck(
            identity=text(wallet, "uid"),
            permissions={"list": True, "order": None},
            balance=money(wallet.get("assets"), self.currency, divisor=MILLI),
        )

    def machines(self) -> list[Machine]:
        """See Provider. Price and address of a running machine come from a call of its own."""
        client, specs = self._client(), self._specs()
        return [_machine(entry, _snapshot(client, entry), specs) for entry in client.instances()]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider. No call returns the facts of one machine, so it is looked for in the list."""
        client = self._client()
        entry = next((each for each in client.instances() if text(each, "uuid") == external_id), None)
        if entry is None:
            return None
        found = _machine(entry, _snapshot(client, entry), self._specs())
        return None if found.status == _S.GONE else found

    def offers(self) -> list[OfferFound]:
        """See HasOffers. The API has neither list nor prices nor stock: what is known of the specs, and what the account pays."""
        paid = {
            machine.raw_gpu: machine.price_per_hour
            for machine in self.machines()
            if machine.billing == Billing.HOURLY and machine.gpu_count == 1
        }
        return [
            _offer(spec, count, self._specs(), paid.get(spec) if count == 1 else None)
            for spec in self._specs()
            for count in COUNTS
        ]

    def order_choices(self, name: str) -> Mapping[str, str]:
        """See CanOrder: the images that the account has saved, and the public ones."""
        if name != "image":
            return {}
        saved = {
            text(image, "image_uuid"): text(image, "name") or text(image, "image_name")
            for image in self._client().images()
            if text(image, "status") == "finished"
        }
        return {**saved, **IMAGES}

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. There is no key against doing it twice: the name is searched for after a lost answer."""
        region = order.region or order.options.get("region", "")
        body: dict[str, Any] = {
            "gpu_spec_uuid": order.details["gpu_spec_uuid"],
            "req_gpu_amount": order.gpu_count,
            "image_uuid": order.options["image"],
            "cuda_v_from": _number(order, "cuda_from", 100, 999),
            "expand_system_disk_by_gb": _number(order, "disk_gb", 0, 500),
            "instance_name": order.name,
            "start_command": start_command(order.startup_script, order.name),
        }
        if region:
            body["data_center_list"] = [region]
        try:
            return self._client().create(body)
        except NotThere as error:  # an image or a spec that is not there
            raise Refused(error.message, raw_code=error.raw_code) from error

    def terminate(self, external_id: str) -> None:
        """See CanOrder. Only a machine that is off is released, so a running one is switched off first; call again then."""
        client = self._client()
        try:
            status = status_of(client.status(external_id), STATUS)
            if status in {_S.STOPPED, _S.FAILED}:
                client.release(external_id)
            elif status not in {_S.STOPPING, _S.TERMINATING, _S.GONE}:
                client.power_off(external_id)
        except NotThere:
            return

    def start(self, external_id: str) -> None:
        """See CanStop. The cards were given away at the stop; there may be none now."""
        self._client().power_on(external_id)

    def stop(self, external_id: str) -> None:
        """See CanStop."""
        self._client().power_off(external_id)

    def stop_effect(self, billing: Billing) -> StopEffect:
        """See Provider."""
        if billing in PREPAID:
            return StopEffect(
                saves_compute=False,
                keeps_billing=("everything",),
                note=_("The term is paid in advance, so stopping saves nothing."),
            )
        return StopEffect(
            saves_compute=True,
            keeps_billing=("disk",),
            note=_(
                "Disk beyond the free size goes on costing. The GPUs are not kept, so starting again may fail, "
                "and AutoDL releases a machine that was off for 15 days in a row."
            ),
        )

    def snapshots(self) -> list[Snapshot]:
        """See HasSnapshots: the account's own images."""
        return [
            Snapshot(
                external_id=text(image, "image_uuid"),
                name=text(image, "name") or text(image, "image_name"),
                status=text(image, "status"),
                is_ready=text(image, "status") == "finished",
                created_at=_time(image.get("create_at")) or _time(image.get("created_at")),
            )
            for image in self._client().images()
        ]

    def snapshot(self, external_id: str, name: str) -> str:
        """See HasSnapshots. The machine must be off: else Refused with NOT_ALLOWED_NOW."""
        return self._client().save_image(external_id, name)


def start_command(script: str, name: str) -> str:
    """Return the command that runs the script at the first start only; AutoDL runs it at every start.

    The mark is of this order's name: a machine that is made from another one's image runs its own script again.
    """
    mark = "/root/.fleetdeck-" + re.sub(r"[^A-Za-z0-9._-]", "-", name)
    encoded = base64.b64encode(script.encode()).decode()
    return f"bash -c '[ -e {mark} ] || {{ echo {encoded} | base64 -d | bash && touch {mark}; }}'"


def _number(order: MachineOrder, name: str, least: int, most: int) -> int:
    value = whole(order.options.get(name))
    if value is None or not least <= value <= most:
        raise Refused(f"{name} must be a whole number from {least} to {most}.", permanent=True)
    return value


def _snapshot(client: AutoDlClient, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a machine costs and where it is reached; {} for one that does not run, or vanished just now."""
    if text(entry, "status") != "running":
        return {}
    try:
        return client.snapshot(text(entry, "uuid"))
    except NotThere:
        return {}


def _machine(entry: Mapping[str, Any], snapshot: Mapping[str, Any], specs: Mapping[str, str]) -> Machine:
    spec, alias = text(entry, "gpu_spec_uuid"), text(snapshot, "snapshot_gpu_alias_name")
    model = model_of(spec, alias, specs)
    count = whole(entry.get("req_gpu_amount"))
    charge_type = text(entry, "charge_type")
    status = status_of(text(entry, "status"), STATUS)
    payg_price = money(snapshot.get("payg_price"), AutoDl.currency, divisor=MILLI)
    usage = snapshot.get("usage_info")
    return Machine(
        external_id=text(entry, "uuid"),
        name=text(entry, "name"),
        status=status,
        raw_status=text(entry, "status"),
        gpu_model=model.name if model else "",
        raw_gpu=spec or alias,
        gpu_count=count,
        gpu_memory_bytes=model.memory_bytes if model else None,
        memory_bytes=whole(usage.get("mem_limit")) or None if isinstance(usage, Mapping) else None,
        region=text(entry, "region_sign") or text(entry, "region_name"),
        billing=BILLINGS.get(charge_type, Billing.HOURLY),
        price_per_hour=_price(payg_price, charge_type, count),
        address=text(snapshot, "proxy_host"),
        ssh_port=whole(snapshot.get("ssh_port")),
        created_at=_time(entry.get("created_at")),
        renews_at=_time(entry.get("expired_at")) if charge_type != "payg" else None,
        is_stop_saving=True if status == _S.STOPPED and charge_type == "payg" else None,
        details={
            "charge_type": charge_type,
            "start_mode": text(entry, "start_mode"),
            "region_name": text(entry, "region_name"),
            "payg_price": str(payg_price) if payg_price is not None else "",
        },
    )


def _price(payg_price: Money | None, charge_type: str, count: int | None) -> Money | None:
    """Return the machine's price; None for several cards, where the vendor does not say whether it is that of one."""
    if payg_price is None or not payg_price.amount or charge_type != "payg" or count != 1:
        return None
    return payg_price


def _offer(spec: str, count: int, specs: Mapping[str, str], price: Money | None) -> OfferFound:
    model = model_of(spec, "", specs)
    return OfferFound(
        key=f"{spec}/{count}",
        gpu_model=model.name if model else "",
        raw_gpu=spec,
        gpu_count=count,
        gpu_memory_bytes=model.memory_bytes if model else None,
        price_per_hour=price,
        details={"gpu_spec_uuid": spec},
    )


def _time(value: Any) -> datetime | None:
    """Return a time; the vendor also writes it as {Time, Valid}, and the year 1 for none."""
    if isinstance(value, Mapping):
        value = value.get("Time") if value.get("Valid") is True else None
    found = time(value)
    return found if found is not None and found.year > 1970 else None
