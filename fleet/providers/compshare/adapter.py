"""A Compshare account: its instances in all regions, what it can order, and how a stop is paid."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.providers.base import (
    TERM_HOURS,
    AccountCheck,
    Billing,
    CanOrder,
    CanReboot,
    CanStop,
    Field,
    HasSnapshots,
    HasSpot,
    Machine,
    MachineOrder,
    OfferFound,
    Provider,
    Snapshot,
    Stock,
    StopEffect,
    order_options,
)
from fleet.providers.compshare.client import HOME_REGION, KNOWN_REGIONS, NO_SUCH_PARAMETER, CompshareClient
from fleet.providers.compshare.machines import CURRENCY, billing_of, image_of, machine_of, region_of
from fleet.providers.compshare.offers import (
    DISK_GIB,
    Form,
    Inventory,
    forms_of,
    inventory_of,
    offers_of,
    order_params,
    quotes_of,
)
from fleet.providers.errors import NotThere, Refused
from fleet.providers.permissions import tried
from fleet.providers.reading import text
from fleet.providers.regions import global_id, local_id, region_list
from fleet.reasons import Reason
from panel.core.money import Money


class Compshare(Provider, CanOrder, CanReboot, CanStop, HasSnapshots, HasSpot):
    """Instances of one Compshare account. The API takes no start-up script: a person runs the join line on a new machine."""

    kind: ClassVar[str] = "compshare"
    label = _("Compshare")
    currency: ClassVar[str] = CURRENCY
    docs_url = "https://www.compshare.cn/docs/gpus/instance/createcompshareinstance"
    runs_startup_script: ClassVar[bool] = False
    credential_fields = (
        Field(
            name="public_key",
            label=_("Public key"),
            help=_(
                "Console → Account centre → API keys. Keys of UCloud's main console are others and do not work here."
            ),
        ),
        Field(name="private_key", label=_("Private key"), is_secret=True, help=_("Beside the public key.")),
    )
    option_fields = (
        Field(
            name="project_id",
            label=_("Project"),
            is_required=False,
            max_length=64,
            help=_("The project's id (org-…). Keys of sub-accounts need it."),
        ),
        Field(
            name="regions",
            label=_("Further regions"),
            is_required=False,
            help=_("Regions that the platform's own list lacks, with commas between; usually none."),
        ),
    )
    order_fields = (
        Field(name="image", label=_("Image"), max_length=64, help=_("The image's id (compshareImage-…).")),
        Field(name="disk_gb", label=_("System disk in GB"), default=str(DISK_GIB), max_length=4),
    )

    def _client(self) -> CompshareClient:
        return CompshareClient(
            self.credentials["public_key"],
            self.credentials["private_key"],
            project_id=self.options["project_id"],
            account=self.account,
            transport=self.transport,
        )

    def check(self) -> AccountCheck:
        """See Provider. Whether the account may order (verified identity, quota) is told by ordering alone."""
        client = self._client()
        _instances, can_list = tried(lambda: client.instances(HOME_REGION))
        return AccountCheck(permissions={"list": can_list, "order": None})

    def machines(self) -> list[Machine]:
        """See Provider: of all regions."""
        return [machine_of(host, region) for region, host in self._hosts(self._client())]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider. The id names the region, so one that is sold no more is still asked."""
        try:
            region, host = self._host(self._client(), external_id)
        except NotThere:
            return None
        return machine_of(host, region)

    def offers(self) -> list[OfferFound]:
        """See HasOffers. Quotes are asked for what has cards free, or may have; the rest is sold out and has no price."""
        client = self._client()
        zones = client.zones()
        zone_ids = {text(zone, "Zone"): text(zone, "ZoneId") for zone in zones}
        regions = self._regions(zones)
        inventory = inventory_of(client.inventory(region) for region in regions)
        forms = {
            (form.zone, form.gpu_type, form.gpu_count): form
            for region in regions
            for entry in client.types(region)
            for form in forms_of(entry, region)
        }
        return [
            offer
            for form in forms.values()
            for offer in offers_of(
                form,
                inventory,
                zone_ids.get(form.zone, ""),
                _quotes(client, form, inventory, zone_ids.get(form.zone, "")),
            )
        ]

    def order_choices(self, name: str) -> Mapping[str, str]:
        """See CanOrder: the account's own images, and the platform's."""
        if name != "image":
            return {}
        images = [*self._own_images(self._client()), *self._client().platform_images(HOME_REGION)]
        return {
            text(image, "CompShareImageId"): text(image, "Name")
            for image in images
            if text(image, "Status") in {"Available", ""}
        }

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. There is no key against doing it twice: the name is searched for after a lost answer."""
        created = self._client().create(**order_params(order, order_options(self, order)))
        return global_id(order.details["region"], created)

    def terminate(self, external_id: str) -> None:
        """See CanOrder. Only a machine that is off is deleted, so a running one is stopped first; call again then."""
        client = self._client()
        try:
            region, host = self._host(client, external_id)
        except NotThere:
            return
        state = text(host, "State")
        if state in {"Stopped", "Install Fail"}:
            self._act(client, "Terminate", region, host, ReleaseUDisk=True)
        elif state != "Stopping":
            self._act(client, "Stop", region, host, Force=True if billing_of(host) == Billing.SPOT else None)

    def start(self, external_id: str) -> None:
        """See CanStop. The cards were given away at the stop; there may be none now."""
        self._do("Start", external_id)

    def stop(self, external_id: str) -> None:
        """See CanStop. The API has one way to stop; whether it saves money is the zone's matter and read back."""
        client = self._client()
        region, host = self._host(client, external_id)
        if billing_of(host) == Billing.SPOT:
            raise Refused(
                gettext("Compshare does not stop spot machines; end it instead."),
                reason=Reason.NOT_SUPPORTED,
                permanent=True,
            )
        self._act(client, "Stop", region, host)

    def reboot(self, external_id: str) -> None:
        """See CanReboot."""
        self._do("Reboot", external_id)

    def stop_effect(self, billing: Billing) -> StopEffect:
        """See Provider."""
        if billing == Billing.SPOT:
            note = _(
                "A spot machine cannot be stopped, only ended. One that Compshare took back keeps its disk for 7 days."
            )
            return StopEffect(saves_compute=False, keeps_billing=("everything",), note=note)
        if billing in TERM_HOURS:
            note = _("The term is paid in advance, so stopping saves nothing.")
            return StopEffect(saves_compute=False, keeps_billing=("everything",), note=note)
        note = _(
            "GPU, CPU and memory stop costing where the zone has that, which is seen once the machine is off; disk beyond "
            "the free size goes on. The GPUs are not kept, and Compshare deletes a machine that was off for 7 days."
        )
        return StopEffect(saves_compute=None, keeps_billing=("disk",), note=note)

    def snapshots(self) -> list[Snapshot]:
        """See HasSnapshots: the images that the account has made."""
        return [image_of(image) for image in self._own_images(self._client())]

    def snapshot(self, external_id: str, name: str) -> str:
        """See HasSnapshots. A container must run for it; a virtual machine may be off."""
        client = self._client()
        region, host = self._host(client, external_id)
        return client.create_image(region=region, zone=text(host, "Zone"), instance_id=text(host, "UHostId"), name=name)

    def _regions(self, zones: list[dict[str, Any]]) -> list[str]:
        further = self.options["regions"].strip()
        told = [*(text(zone, "Region") for zone in zones), *(region_list(further) if further else ())]
        return list(dict.fromkeys(filter(None, told)))

    def _hosts(self, client: CompshareClient) -> list[tuple[str, dict[str, Any]]]:
        """Return (region, entry) of every instance. A call that ignored the region would show one twice: it counts once."""
        found: dict[str, tuple[str, dict[str, Any]]] = {}
        regions = self._regions(client.zones())
        for region in dict.fromkeys([*regions, *KNOWN_REGIONS]):
            try:
                hosts = client.instances(region)
            except Refused as error:
                if region in regions or error.raw_code != NO_SUCH_PARAMETER:
                    raise
                continue  # one that this account does not have
            for host in hosts:
                found.setdefault(text(host, "UHostId"), (region_of(host, region), host))
        return list(found.values())

    def _host(self, client: CompshareClient, external_id: str) -> tuple[str, dict[str, Any]]:
        """Return (region, entry) of one instance: only the whole list of its region says that it is not there.

        Raises NotThere.
        """
        region, instance_id = local_id(external_id)
        for host in client.instances(region):
            if text(host, "UHostId") == instance_id:
                return region, host
        raise NotThere(gettext("Compshare has no such machine."))

    def _own_images(self, client: CompshareClient) -> list[dict[str, Any]]:
        return list(
            {
                text(image, "CompShareImageId"): image
                for zone in client.zones()
                for image in client.own_images(text(zone, "Region"), text(zone, "Zone"))
            }.values()
        )

    def _do(self, action: str, external_id: str) -> None:
        client = self._client()
        region, host = self._host(client, external_id)
        self._act(client, action, region, host)

    def _act(
        self, client: CompshareClient, action: str, region: str, host: Mapping[str, Any], **params: bool | None
    ) -> None:
        client.act(action, region=region, zone=text(host, "Zone"), instance_id=text(host, "UHostId"), **params)


def _quotes(client: CompshareClient, form: Form, inventory: Inventory, zone_id: str) -> dict[str, Money]:
    """Return charge type → price of its term; none for what has no card free.

    Documentation and SDK differ in whether a question without a charge type is answered for all of them or for the month
    alone, so the kinds that matter most are asked for by name when they are missing.
    """
    free = {
        kind
        for kind, billing in (("Postpay", Billing.HOURLY), ("Spot", Billing.SPOT))
        if inventory.stock(form, zone_id, billing)[0] != Stock.NONE
    }
    if not free:
        return {}
    found: dict[str, Money] = {}
    for asked in ({}, *({"ChargeType": kind} for kind in sorted(free))):
        if asked and asked["ChargeType"] in found:
            continue
        try:
            found |= quotes_of(client.prices(**form.quote_params(), **asked))
        except Refused:  # the zone does not sell it in this way
            continue
    return found
