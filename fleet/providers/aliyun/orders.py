"""What is sent to order one ECS instance. Pure."""

from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal
from typing import Final

from django.utils.translation import gettext as _

from fleet.providers.base import Billing, MachineOrder
from fleet.providers.errors import Refused
from fleet.providers.order_values import user_data, whole_text
from fleet.reasons import Reason

USER_DATA_BYTES: Final = 32 * 1024
SPOT_PRICE_STEP: Final = Decimal("0.001")
PERIODS: Final[Mapping[Billing, tuple[str, str]]] = {
    Billing.WEEKLY: ("1", "Week"),
    Billing.MONTHLY: ("1", "Month"),
    Billing.YEARLY: ("12", "Month"),
}


def order_params(order: MachineOrder, options: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of RunInstances but the region. Raises Refused for what ECS cannot be asked."""
    params = {
        "ZoneId": str(order.details["zone"]),
        "InstanceType": str(order.details["instance_type"]),
        "ImageId": options["image"],
        "SecurityGroupId": options["security_group"],
        "VSwitchId": options["vswitch"],
        "InstanceName": order.name,
        "ClientToken": order.name,
        "Amount": "1",
        "SystemDisk.Category": options["disk_kind"],
        "SystemDisk.Size": whole_text(options["disk_gb"]),
        "InternetChargeType": "PayByTraffic",
        "InternetMaxBandwidthOut": whole_text(options["bandwidth_mbps"]),
        "UserData": user_data(order.startup_script, limit_bytes=USER_DATA_BYTES),
    }
    if options["key_pair"]:
        params["KeyPairName"] = options["key_pair"]
    return {**params, **_payment(order, renews=options["auto_renew"] == "yes")}


def _payment(order: MachineOrder, *, renews: bool) -> dict[str, str]:
    """Return the parameters of the way of paying. Raises Refused for one that ECS does not have."""
    if order.billing in PERIODS:
        period, unit = PERIODS[order.billing]
        params = {"InstanceChargeType": "PrePaid", "Period": period, "PeriodUnit": unit, "AutoPay": "true"}
        return {**params, "AutoRenew": "true", "AutoRenewPeriod": "1"} if renews else {**params, "AutoRenew": "false"}
    if order.billing == Billing.HOURLY:
        return {"InstanceChargeType": "PostPaid", "SpotStrategy": "NoSpot"}
    if order.billing != Billing.SPOT:
        raise Refused(_("ECS is not paid in this way."), reason=Reason.NOT_SUPPORTED, permanent=True)
    params = {"InstanceChargeType": "PostPaid", "SpotDuration": "1", "SpotInterruptionBehavior": "Terminate"}
    if order.max_price_per_hour is None:
        return {**params, "SpotStrategy": "SpotAsPriceGo"}
    limit = order.max_price_per_hour.amount.quantize(SPOT_PRICE_STEP, rounding=ROUND_DOWN)
    return {**params, "SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": str(limit)}
