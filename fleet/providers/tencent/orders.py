"""What is sent to order one CVM instance. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from fleet.providers.base import Billing, MachineOrder
from fleet.providers.errors import Refused
from fleet.providers.order_values import user_data, whole_text
from fleet.reasons import Reason

# The API takes 16 KB of user data and does not say whether that is before or after base64; this fits either way.
USER_DATA_BYTES: Final = 12 * 1024
PERIODS: Final[Mapping[Billing, int]] = {Billing.MONTHLY: 1, Billing.YEARLY: 12}


def order_body(order: MachineOrder, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of RunInstances. Raises Refused for what CVM cannot be asked."""
    body: dict[str, Any] = {
        "Placement": {"Zone": str(order.details["zone"])},
        "InstanceType": str(order.details["instance_type"]),
        "ImageId": options["image"],
        "InstanceName": order.name,
        "ClientToken": order.name,
        "InstanceCount": 1,
        "SystemDisk": {"DiskType": options["disk_kind"], "DiskSize": int(whole_text(options["disk_gb"]))},
        "InternetAccessible": _network(int(whole_text(options["bandwidth_mbps"]))),
        "UserData": user_data(order.startup_script, limit_bytes=USER_DATA_BYTES),
        **_payment(order, renews=options["auto_renew"] == "yes"),
    }
    if options["security_group"]:
        body["SecurityGroupIds"] = [options["security_group"]]
    if options["key"]:
        body["LoginSettings"] = {"KeyIds": [options["key"]]}
    if bool(options["vpc"]) != bool(options["subnet"]):
        raise Refused(_("A VPC and a subnet are given together, or neither."), permanent=True)
    if options["vpc"]:
        body["VirtualPrivateCloud"] = {"VpcId": options["vpc"], "SubnetId": options["subnet"]}
    return body


def _network(mbps: int) -> dict[str, Any]:
    """Return the public side: paid by traffic; without bandwidth there may be no address."""
    if not mbps:
        return {"InternetMaxBandwidthOut": 0}
    return {
        "InternetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
        "InternetMaxBandwidthOut": mbps,
        "PublicIpAssigned": True,
    }


def _payment(order: MachineOrder, *, renews: bool) -> dict[str, Any]:
    if order.billing in PERIODS:
        flag = "NOTIFY_AND_AUTO_RENEW" if renews else "NOTIFY_AND_MANUAL_RENEW"
        prepaid = {"Period": PERIODS[order.billing], "RenewFlag": flag}
        return {"InstanceChargeType": "PREPAID", "InstanceChargePrepaid": prepaid}
    if order.billing == Billing.HOURLY:
        return {"InstanceChargeType": "POSTPAID_BY_HOUR"}
    if order.billing != Billing.SPOT:
        raise Refused(_("CVM is not paid in this way."), reason=Reason.NOT_SUPPORTED, permanent=True)
    if order.max_price_per_hour is None:
        return {"InstanceChargeType": "SPOTPAID"}
    bid = {"MaxPrice": f"{order.max_price_per_hour.amount:f}", "SpotInstanceType": "one-time"}
    return {"InstanceChargeType": "SPOTPAID", "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": bid}}
