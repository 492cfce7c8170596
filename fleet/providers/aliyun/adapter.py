"""Alibaba Cloud ECS as a provider: several regions, pay-as-you-go, spot and subscription."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.providers.aliyun.account import AliyunAccount
from fleet.providers.aliyun.bills import charge_of, days_of
from fleet.providers.aliyun.choices import choices_of, images_of
from fleet.providers.aliyun.client import EcsClient
from fleet.providers.aliyun.machines import machine_of
from fleet.providers.aliyun.offers import offers_of
from fleet.providers.aliyun.orders import order_params
from fleet.providers.aliyun.prices import Prices
from fleet.providers.aliyun.rpc import AliyunRpc
from fleet.providers.base import (
    PREPAID,
    AccountCheck,
    Billing,
    Charge,
    Field,
    HasBilling,
    Machine,
    MachineOrder,
    OfferFound,
    Snapshot,
    StopEffect,
    order_options,
)
from fleet.providers.cloud_fields import AUTO_RENEW, BANDWIDTH, IMAGE, ROOT_DISK, regions_field
from fleet.providers.clouds import RegionalCloud
from fleet.providers.errors import NotThere
from fleet.providers.permissions import tried
from fleet.providers.reading import text
from fleet.providers.regions import local_id, word_list

DISKS: Final[Mapping[str, str | Promise]] = {
    "cloud_essd": "ESSD",
    "cloud_auto": "ESSD AutoPL",
    "cloud_efficiency": _("Ultra disk"),
}


class Aliyun(RegionalCloud[EcsClient], HasBilling):
    """ECS instances of one Alibaba Cloud account in the regions that it names."""

    kind: ClassVar[str] = "aliyun"
    label = _("Alibaba Cloud ECS")
    currency: ClassVar[str] = "CNY"
    end_keeps = _("Elastic addresses, and data disks that are not set to be released with it, stay and go on costing.")
    docs_url = "https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-overview"
    preemption_notice = timedelta(minutes=5)
    credential_fields = (
        Field(
            name="access_key_id",
            label=_("AccessKey ID"),
            help=_("RAM console → Users → the user → AccessKey pairs. Use a RAM user, not the account itself."),
        ),
        Field(
            name="access_key_secret",
            label=_("AccessKey secret"),
            is_secret=True,
            help=_("The user needs AliyunECSFullAccess; AliyunBSSReadOnlyAccess besides for the balance and bills."),
        ),
    )
    option_fields = (
        regions_field("cn-hangzhou"),
        Field(
            name="instance_types",
            label=_("Instance types on offer"),
            is_required=False,
            help=_("How wanted types begin, separated by commas, such as ecs.gn7i; all GPU types when empty."),
        ),
        Field(
            name="site",
            label=_("Site"),
            default="china",
            choices={"china": _("China (aliyun.com)"), "international": _("International (alibabacloud.com)")},
        ),
    )
    order_fields = (
        IMAGE,
        Field(name="security_group", label=_("Security group ID")),
        Field(name="vswitch", label=_("vSwitch ID"), help=_("It must lie in the zone of the offer.")),
        Field(name="key_pair", label=_("Key pair for SSH"), is_required=False),
        Field(name="disk_kind", label=_("System disk"), default="cloud_essd", choices=DISKS),
        ROOT_DISK,
        BANDWIDTH,
        AUTO_RENEW,
    )

    def _rpc(self) -> AliyunRpc:
        return AliyunRpc(
            self.credentials["access_key_id"],
            self.credentials["access_key_secret"],
            account=self.account,
            transport=self.transport,
        )

    def _client(self) -> EcsClient:
        return EcsClient(self._rpc())

    def _machine(self, instance: Mapping[str, Any], region: str) -> Machine:
        return machine_of(instance, region)

    def _instances(self, client: EcsClient, region: str, *, name: str = "") -> list[dict[str, Any]]:
        return client.instances(region, InstanceName=name) if name else client.instances(region)

    def _run(self, client: EcsClient, region: str, order: MachineOrder) -> str:
        return client.run(region, order_params(order, order_options(self, order)))

    def _stopped_mode(self, instance: Mapping[str, Any]) -> str:
        return "KeepCharging" if text(instance, "InstanceChargeType") == "PrePaid" else "StopCharging"

    def _choices(self, client: EcsClient, region: str, name: str) -> list[tuple[str, str, str]]:
        return choices_of(client, region, name)

    def _images(self, client: EcsClient, region: str) -> list[Snapshot]:
        return images_of(client, region)

    def check(self) -> AccountCheck:
        """See Provider. Listing and ordering are tried by dry runs, which change nothing."""
        rpc, regions = self._rpc(), self._regions()
        client, account = EcsClient(rpc), AliyunAccount(rpc, self.options["site"])
        identity = account.identity()
        may_list = [client.may(region, "DescribeInstances", {"RegionId": region}) for region in regions]
        balance, may_bill = tried(account.balance)
        return AccountCheck(
            identity=identity,
            permissions={
                "list": all(each is not False for each in may_list),
                "order": client.may(regions[0], "RunInstances", {"RegionId": regions[0]}),
                "billing": may_bill,
            },
            balance=balance,
        )

    def offers(self) -> list[OfferFound]:
        """See HasOffers: one for each zone, type and way of paying."""
        client = self._client()
        prices = Prices(client, self.credentials["access_key_id"])
        beginnings = word_list(self.options["instance_types"])
        return [offer for region in self._regions() for offer in offers_of(client, prices, region, beginnings)]

    def terminate(self, external_id: str) -> None:
        """See CanOrder: the instance and its system disk. A subscription that still runs is refused by the provider."""
        region, instance_id = local_id(external_id)
        try:
            self._client().delete(region, instance_id)
        except NotThere:
            return

    def stop_effect(self, billing: Billing) -> StopEffect:
        """See Provider."""
        if billing in PREPAID:
            return StopEffect(
                saves_compute=False,
                keeps_billing=("everything",),
                note=_("A subscription is paid until its end; stopping saves nothing."),
            )
        return StopEffect(
            saves_compute=True,
            keeps_billing=("disk",),
            note=_(
                "Disks and elastic addresses go on costing. A public address that is not elastic is lost, and starting "
                "again may fail for want of stock. Types with local disks (such as gn5) go on costing in full."
            ),
        )

    def charges(self, *, start: datetime, end: datetime) -> list[Charge]:
        """See HasBilling: days of UTC+8 that begin in [start, end); what was ended carries its bare id."""
        account = AliyunAccount(self._rpc(), self.options["site"])
        days = days_of(start, end)
        known = {local_id(each.external_id)[1]: each.external_id for each in self.machines()} if days else {}
        return [
            charge
            for day in days
            for item in account.bills(day)
            if (charge := charge_of(item, day, known, self.currency)) is not None
        ]
