"""Tencent Cloud CVM as a provider: several regions, pay-as-you-go, spot and subscription."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.providers.base import (
    PREPAID,
    AccountCheck,
    Billing,
    Field,
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
from fleet.providers.regions import local_id, word_list
from fleet.providers.tencent.account import TencentAccount
from fleet.providers.tencent.choices import IMAGE_NAME_LENGTH, choices_of, images_of
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


class Tencent(RegionalCloud[CvmClient]):
    """CVM instances of one Tencent Cloud account in the regions that it names."""

    kind: ClassVar[str] = "tencent"
    label = _("Tencent Cloud CVM")
    currency: ClassVar[str] = "CNY"
    end_keeps = _("Elastic addresses, and data disks that are not set to be released with it, stay and go on costing.")
    docs_url = "https://cloud.tencent.com/document/api/213/15689"
    image_name_length: ClassVar[int] = IMAGE_NAME_LENGTH
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

    def _machine(self, instance: Mapping[str, Any], region: str) -> Machine:
        return machine_of(instance, region)

    def _instances(self, client: CvmClient, region: str, *, name: str = "") -> list[dict[str, Any]]:
        return client.instances(region, [{"Name": "instance-name", "Values": [name]}] if name else ())

    def _run(self, client: CvmClient, region: str, order: MachineOrder) -> str:
        return client.run(region, order_body(order, order_options(self, order)))

    def _stopped_mode(self, instance: Mapping[str, Any]) -> str:
        """Return the mode; a type that cannot be stopped without charge is refused (NOT_SUPPORTED) and goes on running."""
        is_hourly = text(instance, "InstanceChargeType") == "POSTPAID_BY_HOUR"
        return "STOP_CHARGING" if is_hourly else "KEEP_CHARGING"

    def _choices(self, client: CvmClient, region: str, name: str) -> list[tuple[str, str, str]]:
        return choices_of(client, region, name)

    def _images(self, client: CvmClient, region: str) -> list[Snapshot]:
        return images_of(client, region)

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

    def offers(self) -> list[OfferFound]:
        """See HasOffers: one for each zone, type and way of paying."""
        client = self._client()
        beginnings = word_list(self.options["instance_types"])
        return [
            offer
            for region in self._regions()
            for offer in offers_of(client.sold(region, CHARGE_TYPES), client.types(region), region, beginnings)
        ]

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
