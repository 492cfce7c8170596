"""AutoDL's container instances Pro as machines: states, money in thousandths of a yuan, GPU specs."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.providers.autodl.catalogue import COUNTS, DEFAULT_IMAGE, IMAGES, REGIONS, specs_of
from fleet.providers.autodl.client import AutoDlClient
from fleet.providers.autodl.machines import CURRENCY, MILLI, STATUS, image_of, machine_of, offer_of, start_command
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
    order_options,
    status_of,
)
from fleet.providers.errors import NotThere, Refused
from fleet.providers.reading import money, text, whole

PUBLIC: Final = "https://api.autodl.com"
PRIVATE: Final = "https://private.autodl.com"


class AutoDl(Provider, CanOrder, CanStop, HasSnapshots):
    """Instances Pro of one AutoDL account. Ordinary instances have no API; there is no restart in it either."""

    kind: ClassVar[str] = "autodl"
    label = "AutoDL"
    currency: ClassVar[str] = CURRENCY
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
        return [machine_of(entry, _snapshot(client, entry), specs) for entry in client.instances()]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider. No call returns the facts of one machine, so it is looked for in the list."""
        client = self._client()
        entry = next((each for each in client.instances() if text(each, "uuid") == external_id), None)
        if entry is None:
            return None
        found = machine_of(entry, _snapshot(client, entry), self._specs())
        return None if found.status == MachineStatus.GONE else found

    def offers(self) -> list[OfferFound]:
        """See HasOffers. The API has neither list nor prices nor stock: what is known of the specs, and what the account pays."""
        paid = {
            machine.raw_gpu: machine.price_per_hour
            for machine in self.machines()
            if machine.billing == Billing.HOURLY and machine.gpu_count == 1
        }
        return [
            offer_of(spec, count, self._specs(), paid.get(spec) if count == 1 else None)
            for spec in self._specs()
            for count in COUNTS
        ]

    def order_choices(self, name: str) -> Mapping[str, str]:
        """See CanOrder: the images that the account has saved, and the public ones."""
        if name != "image":
            return {}
        return {**{image.external_id: image.name for image in self.snapshots() if image.is_ready}, **IMAGES}

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. There is no key against doing it twice: the name is searched for after a lost answer."""
        options = order_options(self, order)
        region = order.region or options["region"]
        body: dict[str, Any] = {
            "gpu_spec_uuid": order.details["gpu_spec_uuid"],
            "req_gpu_amount": order.gpu_count,
            "image_uuid": options["image"],
            "cuda_v_from": _number(options, "cuda_from", 100, 999),
            "expand_system_disk_by_gb": _number(options, "disk_gb", 0, 500),
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
            if status in {MachineStatus.STOPPED, MachineStatus.FAILED}:
                client.release(external_id)
            elif status not in {MachineStatus.STOPPING, MachineStatus.TERMINATING, MachineStatus.GONE}:
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
        return [image_of(image) for image in self._client().images()]

    def snapshot(self, external_id: str, name: str) -> str:
        """See HasSnapshots. The machine must be off: else Refused with NOT_ALLOWED_NOW."""
        return self._client().save_image(external_id, name)


def _number(options: Mapping[str, str], name: str, least: int, most: int) -> int:
    value = whole(options[name])
    if value is None or not least <= value <= most:
        facts = {"name": name, "least": least, "most": most}
        raise Refused(gettext("%(name)s must be a whole number from %(least)d to %(most)d.") % facts, permanent=True)
    return value


def _snapshot(client: AutoDlClient, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a machine costs and where it is reached; {} for one that does not run, or vanished just now."""
    if text(entry, "status") != "running":
        return {}
    try:
        return client.snapshot(text(entry, "uuid"))
    except NotThere:
        return {}
