"""Tencent Cloud CVM as a provider: several regions, pay-as-you-go, spot and subscription."""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.providers.base import (
    PREPAID,
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
    Snapshot,
    StopEffect,
    order_options,
)
from fleet.providers.cloud_fields import AUTO_RENEW, BANDWIDTH, IMAGE, ROOT_DISK, regions_field
from fleet.providers.clouds import RegionalCloud
from fleet.providers.errors import NotThere, Refused
from fleet.providers.permissions import may, tried
from fleet.providers.reading import text
from fleet.providers.regions import global_id, local_id, region_list, word_list
from fleet.providers.tencent.account import TencentAccount
from fleet.providers.tencent.choices import IMAGE_NAME_LENGTH, choices_of, snapshots_of
from fleet.providers.tencent.client import CvmClient
from fleet.providers.tencent.codes import ENDING_ALREADY
from fleet.providers.tencent.machines import machine_of
from fleet.providers.tencent.offers import CHARGE_TYPES, offers_of
from fleet.providers.tencent.orders import order_body
from fleet.providers.tencent.rpc import TencentRpc

DISKS: Final[Mapping[str, str | Promise]] = {
    "CLOUD_PREMIUM": _("Premium disk"),
    "CLOUD_BSSD": _("Balanced SSD"),
    "CLOUD_SSD": "SSD",
}


class Tencent(RegionalCloud, CanOrder, CanReboot, CanStop, HasSnapshots, HasSpot):
    """CVM instances of one Tencent Cloud account in the regions that it names."""

    kind: ClassVar[str] = "tencent"
    label = _("Tencent Cloud CVM")
    currency: ClassVar[str] = "CNY"
    docs_url = "https://cloud.tencent.com/document/api/213/15689"
    has_client_token: ClassVar[bool] = True
    credential_fields = (
        Field(
            name="secret_id",
            label="SecretId",
            help=_("CAM console → API keys. Use a sub-user, not the account itself."),
        ),
        Field(
            name="secret_key",
            label="SecretKey",
            is_secret=True,
            help=_("The user needs QcloudCVMFullAccess, and finance:DescribeAccountBalance besides for the balance."),
        ),
    )
    option_fields = (
        regions_field("ap-guangzhou"),
        Field(
            name="instance_types",
            label=_("Instance types on offer"),
            is_required=False,
            help=_("How wanted types begin, separated by commas, such as GN7; all GPU types when empty."),
        ),
    )
    order_fields = (
        IMAGE,
        Field(name="security_group", label=_("Security group ID"), is_required=False),
        Field(name="vpc", label=_("VPC ID"), is_required=False, help=_("The default network when empty.")),
        Field(name="subnet", label=_("Subnet ID"), is_required=False, help=_("It must lie in the zone of the offer.")),
        Field(name="key", label=_("SSH key ID"), is_required=False),
        Field(name="disk_kind", label=_("System disk"), default="CLOUD_BSSD", choices=DISKS),
        ROOT_DISK,
        BANDWIDTH,
        AUTO_RENEW,
    )

    def _rpc(self) -> TencentRpc:
        return TencentRpc(
            self.credentials["secret_id"],
            self.credentials["secret_key"],
            account=self.account,
            transport=self.transport,
        )

    def _client(self) -> CvmClient:
        return CvmClient(self._rpc())

    def _regions(self) -> list[str]:
        return list(region_list(self.options["regions"]))

    def check(self) -> AccountCheck:
        """See Provider. Ordering is tried by a dry run, which changes nothing."""
        rpc, regions = self._rpc(), self._regions()
        client, account = CvmClient(rpc), TencentAccount(rpc, regions[0])
        identity = account.identity()
        balance, may_bill = tried(account.balance)
        return AccountCheck(
            identity=identity,
            permissions={
                "list": all(may(partial(client.instances, region)) for region in regions),
                "order": client.may_order(regions[0], f"{regions[0]}-1"),
                "billing": may_bill,
            },
            balance=balance,
        )

    def machines(self) -> list[Machine]:
        """See Provider: of all regions, or none."""
        client = self._client()
        return [machine_of(each, region) for region in self._regions() for each in client.instances(region)]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider. The id names the region, so a region that was taken off the list is still asked."""
        region, instance_id = local_id(external_id)
        found = self._client().instance(region, instance_id)
        return None if found is None else machine_of(found, region)

    def named(self, name: str) -> list[Machine]:
        """See Provider; the API filters."""
        client, filters = self._client(), [{"Name": "instance-name", "Values": [name]}]
        found = [machine_of(each, region) for region in self._regions() for each in client.instances(region, filters)]
        return [machine for machine in found if machine.name == name]

    def offers(self) -> list[OfferFound]:
        """See HasOffers: one for each zone, type and way of paying."""
        client = self._client()
        beginnings = word_list(self.options["instance_types"])
        return [
            offer
            for region in self._regions()
            for offer in offers_of(client.sold(region, CHARGE_TYPES), client.types(region), region, beginnings)
        ]

    def order_choices(self, name: str) -> Mapping[str, str]:
        """See CanOrder: images, security groups, networks and SSH keys of all regions."""
        return choices_of(self._client(), self._regions(), name)

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. The name is the client token too, so that the same order is never met twice."""
        region = str(order.details["region"])
        return global_id(region, self._client().run(region, order_body(order, order_options(self, order))))

    def terminate(self, external_id: str) -> None:
        """See CanOrder: the instance and its system disk; a subscription needs a second call, which the next round makes."""
        region, instance_id = local_id(external_id)
        try:
            self._client().terminate(region, instance_id)
        except NotThere:
            return
        except Refused as error:
            if error.raw_code != ENDING_ALREADY:
                raise

    def start(self, external_id: str) -> None:
        """See CanStop. An instance that was stopped without charge may be refused for want of stock."""
        self._client().start(*local_id(external_id))

    def stop(self, external_id: str) -> None:
        """See CanStop. The mode is always sent, because the API's own default goes on charging.

        A type that cannot be stopped without charge is refused (NOT_SUPPORTED) and goes on running.
        """
        region, instance_id = local_id(external_id)
        client = self._client()
        found = client.instance(region, instance_id)
        if found is None:
            raise NotThere(f"There is no instance {instance_id} in {region}.")
        is_hourly = text(found, "InstanceChargeType") == "POSTPAID_BY_HOUR"
        client.stop(region, instance_id, "STOP_CHARGING" if is_hourly else "KEEP_CHARGING")

    def reboot(self, external_id: str) -> None:
        """See CanReboot."""
        self._client().reboot(*local_id(external_id))

    def snapshots(self) -> list[Snapshot]:
        """See HasSnapshots: images, from which a machine is ordered as from any other."""
        return snapshots_of(self._client(), self._regions())

    def snapshot(self, external_id: str, name: str) -> str:
        """See HasSnapshots: an image of the system disk, while the machine runs on."""
        region, instance_id = local_id(external_id)
        return self._client().create_image(region, instance_id, name[:IMAGE_NAME_LENGTH])

    def stop_effect(self, billing: Billing) -> StopEffect:
        """See Provider."""
        if billing in PREPAID:
            return StopEffect(
                saves_compute=False,
                keeps_billing=("everything",),
                note=_("A subscription is paid until its end; stopping saves nothing."),
            )
        if billing == Billing.SPOT:
            return StopEffect(
                saves_compute=False,
                keeps_billing=("everything",),
                note=_("A spot machine is stopped in the mode that goes on costing; end it to save money."),
            )
        return StopEffect(
            saves_compute=None,
            keeps_billing=("disk",),
            note=_(
                "Not every GPU type can be stopped without charge: one that cannot is refused and goes on running. Where "
                "it can, disks go on costing, the public address is lost, and starting again may fail for want of stock."
            ),
        )
