"""The CVM API 2017-03-12 over HTTP: one server for all regions, all pages or an exception."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fleet.providers.errors import AccessRefused, NotThere, NotUnderstood, OutcomeUnknown, Refused, Unavailable
from fleet.providers.reading import text, whole
from fleet.providers.tencent.codes import DRY_RUN_PASSED
from fleet.providers.tencent.rpc import TencentRpc
from fleet.reasons import Reason

VERSION: Final = "2017-03-12"
VPC_VERSION: Final = "2017-03-12"
PAGE: Final = 100
MAX_PAGES: Final = 200


class CvmClient:
    """The calls that the adapter needs; answers are the JSON objects of the API."""

    def __init__(self, rpc: TencentRpc) -> None:
        self._rpc = rpc

    def _call(self, region: str, action: str, body: Mapping[str, Any], *, is_write: bool = False) -> dict[str, Any]:
        return self._rpc.call("cvm", VERSION, action, body, region=region, is_write=is_write)

    def instances(self, region: str, filters: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """Return the instances of a region, all pages."""
        call = partial(self._call, region, "DescribeInstances")
        return _all(call, ("InstanceSet", "InstanceId"), {"Filters": list(filters)} if filters else {})

    def instance(self, region: str, instance_id: str) -> dict[str, Any] | None:
        """Return one instance, None when there is none of that id."""
        try:
            body = self._call(region, "DescribeInstances", {"InstanceIds": [instance_id], "Limit": 1})
        except NotThere:
            return None
        found = _objects(body, "InstanceSet")
        return next((each for each in found if text(each, "InstanceId") == instance_id), None)

    def run(self, region: str, body: Mapping[str, Any]) -> str:
        """Create one instance and return its id."""
        answer = self._call(region, "RunInstances", body, is_write=True)
        ids = answer.get("InstanceIdSet")
        if not isinstance(ids, list) or len(ids) != 1 or not isinstance(ids[0], str):
            raise OutcomeUnknown("The answer to RunInstances does not name one instance.")
        return ids[0]

    def start(self, region: str, instance_id: str) -> None:
        """Start a stopped instance."""
        self._call(region, "StartInstances", {"InstanceIds": [instance_id]}, is_write=True)

    def stop(self, region: str, instance_id: str, stopped_mode: str) -> None:
        """Stop an instance, by force when it does not obey; stopped_mode: STOP_CHARGING or KEEP_CHARGING."""
        body = {"InstanceIds": [instance_id], "StopType": "SOFT_FIRST", "StoppedMode": stopped_mode}
        self._call(region, "StopInstances", body, is_write=True)

    def reboot(self, region: str, instance_id: str) -> None:
        """Restart an instance, by force when it does not obey."""
        self._call(region, "RebootInstances", {"InstanceIds": [instance_id], "StopType": "SOFT_FIRST"}, is_write=True)

    def terminate(self, region: str, instance_id: str) -> None:
        """Return an instance; a subscription goes into the recycle bin first and is ended by a second call."""
        self._call(region, "TerminateInstances", {"InstanceIds": [instance_id]}, is_write=True)

    def sold(self, region: str, charge_types: Sequence[str]) -> list[dict[str, Any]]:
        """Return what a region sells: an entry for each zone, instance type and way of paying, with price and stock."""
        filters = [{"Name": "instance-charge-type", "Values": list(charge_types)}]
        return _objects(
            self._call(region, "DescribeZoneInstanceConfigInfos", {"Filters": filters}), "InstanceTypeQuotaSet"
        )

    def types(self, region: str) -> list[dict[str, Any]]:
        """Return the instance types of a region by zone, with their cards."""
        return _objects(self._call(region, "DescribeInstanceTypeConfigs", {}), "InstanceTypeConfigSet")

    def images(self, region: str, kinds: Sequence[str]) -> list[dict[str, Any]]:
        """Return the images of some kinds: PRIVATE_IMAGE, SHARED_IMAGE, PUBLIC_IMAGE."""
        call = partial(self._call, region, "DescribeImages")
        query = {"Filters": [{"Name": "image-type", "Values": list(kinds)}]}
        return _all(call, ("ImageSet", "ImageId"), query)

    def create_image(self, region: str, instance_id: str, name: str) -> str:
        """Begin saving an instance's system disk as an image and return its id."""
        answer = self._call(region, "CreateImage", {"InstanceId": instance_id, "ImageName": name}, is_write=True)
        image = text(answer, "ImageId")
        if not image:
            raise OutcomeUnknown("The answer to CreateImage names no image.")
        return image

    def keys(self, region: str) -> list[dict[str, Any]]:
        """Return the account's SSH keys."""
        return _all(partial(self._call, region, "DescribeKeyPairs"), ("KeyPairSet", "KeyId"), {})

    def security_groups(self, region: str) -> list[dict[str, Any]]:
        """Return the security groups of a region; they belong to another product, VPC."""
        call = partial(self._vpc, region, "DescribeSecurityGroups")
        return _all(call, ("SecurityGroupSet", "SecurityGroupId"), {})

    def subnets(self, region: str) -> list[dict[str, Any]]:
        """Return the subnets of a region, each with its network and zone."""
        return _all(partial(self._vpc, region, "DescribeSubnets"), ("SubnetSet", "SubnetId"), {})

    def _vpc(self, region: str, action: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Call an action of VPC, which wants text where CVM wants numbers."""
        paged = {name: str(value) if isinstance(value, int) else value for name, value in body.items()}
        return self._rpc.call("vpc", VPC_VERSION, action, paged, region=region)

    def may_order(self, region: str, zone: str) -> bool | None:
        """Say by a dry run whether the key may order; None when that cannot be told."""
        try:
            self._call(region, "RunInstances", {"Placement": {"Zone": zone}, "DryRun": True})
        except AccessRefused as error:
            if error.reason != Reason.PERMISSION_MISSING:
                raise
            return False
        except Refused as error:
            return True if error.raw_code == DRY_RUN_PASSED else None
        return True


def _all(
    call: Callable[[Mapping[str, Any]], dict[str, Any]], names: tuple[str, str], query: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the entries of all pages. names: of the list and of an entry's id.

    Pages are counted by offset, so an entry that goes away meanwhile would hide another: when the count changes between two
    pages, the list is not believed (Unavailable) and the next round reads it again.
    """
    key, id_name = names
    found: dict[str, dict[str, Any]] = {}
    offset, total = 0, -1
    for _page in range(MAX_PAGES):
        body = call({**query, "Offset": offset, "Limit": PAGE})
        page, count = _objects(body, key), whole(body.get("TotalCount"))
        if count is None or (not page and offset < count):
            raise NotUnderstood(f"Tencent Cloud's {key} breaks off.")
        if total not in {-1, count}:
            raise Unavailable(f"Tencent Cloud's {key} changed while it was read.")
        total, offset = count, offset + len(page)
        found |= {text(each, id_name): each for each in page}
        if offset >= total:
            break
    if len(found) < total or offset < total:
        raise NotUnderstood(f"The pages of Tencent Cloud's {key} repeat themselves or have no end.")
    return list(found.values())


def _objects(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of the answer; null is a list without entries."""
    if name not in body:
        raise NotUnderstood(f"Tencent Cloud's answer has no {name}.")
    found = body[name]
    if found is None:
        return []
    if not isinstance(found, list):
        raise NotUnderstood(f"Tencent Cloud's {name} is no list.")
    return [each for each in found if isinstance(each, dict)]
