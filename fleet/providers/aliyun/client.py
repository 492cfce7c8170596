"""The ECS API 2014-05-26 over HTTP: one server for each region, all pages or an exception."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from fleet.providers.aliyun.codes import DRY_RUN_PASSED
from fleet.providers.aliyun.rpc import AliyunRpc
from fleet.providers.aliyun.shape import wrapped
from fleet.providers.errors import AccessRefused, NotUnderstood, OutcomeUnknown, Refused
from fleet.providers.reading import text
from fleet.reasons import Reason

VERSION: Final = "2014-05-26"
PAGE: Final = "100"
MAX_PAGES: Final = 200
# Regions whose server has a name of its own; all others follow one pattern. Source: the API's list of endpoints.
HOSTS: Final[Mapping[str, str]] = {
    "cn-hangzhou": "ecs-cn-hangzhou.aliyuncs.com",
    "cn-hangzhou-finance": "ecs.aliyuncs.com",
    "cn-shanghai-finance-1": "ecs-cn-hangzhou.aliyuncs.com",
    "cn-shenzhen-finance-1": "ecs-cn-hangzhou.aliyuncs.com",
}
VPC_VERSION: Final = "2016-04-28"
VPC_HOST: Final = "vpc.aliyuncs.com"
VPC_PAGE: Final = 50
KEY_PAGE: Final = 50
# Images that are there or on their way; "Available" alone would hide the one that is being saved.
IMAGE_STATES: Final = "Creating,Waiting,Available,UnAvailable,CreateFailed"


def host_of(region: str) -> str:
    """Return the name of a region's server."""
    return HOSTS.get(region, f"ecs.{region}.aliyuncs.com")


class EcsClient:
    """The calls that the adapter needs; answers are the JSON objects of the API."""

    def __init__(self, rpc: AliyunRpc) -> None:
        self._rpc = rpc

    def _call(self, region: str, action: str, params: Mapping[str, str], *, is_write: bool = False) -> dict[str, Any]:
        return self._rpc.call(host_of(region), VERSION, action, params, is_write=is_write)

    def instances(self, region: str, **filters: str) -> list[dict[str, Any]]:
        """Return the instances of a region. Raises AccessRefused when the key may not list them.

        To a key without the permission the API shows an empty list, so an empty one is believed only after a dry run.
        """
        params = {"RegionId": region, **filters}
        found = list(self._pages(region, "DescribeInstances", params, "Instances", "Instance"))
        if not found and self.may(region, "DescribeInstances", {"RegionId": region}) is False:
            raise AccessRefused(
                "The key may not list instances (ecs:DescribeInstances).", reason=Reason.PERMISSION_MISSING
            )
        return found

    def instance(self, region: str, instance_id: str) -> dict[str, Any] | None:
        """Return one instance, None when there is none of that id."""
        found = self.instances(region, InstanceIds=json.dumps([instance_id]))
        return next((each for each in found if text(each, "InstanceId") == instance_id), None)

    def run(self, region: str, params: Mapping[str, str]) -> str:
        """Create one instance and return its id."""
        body = self._call(region, "RunInstances", {"RegionId": region, **params}, is_write=True)
        try:
            ids = [each for found in _strings(body, "InstanceIdSets", "InstanceIdSet") for each in _spelt_out(found)]
        except NotUnderstood as error:
            raise OutcomeUnknown(error.message) from error
        if len(ids) != 1:
            raise OutcomeUnknown(f"The answer to RunInstances names {len(ids)} instances.")
        return ids[0]

    def start(self, region: str, instance_id: str) -> None:
        """Start a stopped instance."""
        self._call(region, "StartInstance", {"InstanceId": instance_id}, is_write=True)

    def stop(self, region: str, instance_id: str, stopped_mode: str) -> None:
        """Stop an instance; stopped_mode: StopCharging or KeepCharging."""
        params = {"InstanceId": instance_id, "StoppedMode": stopped_mode}
        self._call(region, "StopInstance", params, is_write=True)

    def reboot(self, region: str, instance_id: str) -> None:
        """Restart an instance."""
        self._call(region, "RebootInstance", {"InstanceId": instance_id}, is_write=True)

    def delete(self, region: str, instance_id: str) -> None:
        """Release an instance, running or not, and a subscription that has run out. Raises NotThere."""
        params = {"InstanceId": instance_id, "Force": "true", "TerminateSubscription": "true"}
        self._call(region, "DeleteInstance", params, is_write=True)

    def gpu_types(self, region: str) -> list[dict[str, Any]]:
        """Return all instance types with one GPU at least."""
        params = {"MinimumGPUAmount": "1"}
        return list(self._pages(region, "DescribeInstanceTypes", params, "InstanceTypes", "InstanceType"))

    def available(self, region: str, charge: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the zones of a region with the instance types that they sell in one way of paying."""
        params = {
            "RegionId": region,
            "DestinationResource": "InstanceType",
            "ResourceType": "instance",
            "IoOptimized": "optimized",
            "NetworkCategory": "vpc",
            **charge,
        }
        return _objects(self._call(region, "DescribeAvailableResource", params), "AvailableZones", "AvailableZone")

    def price(self, region: str, instance_type: str, terms: Mapping[str, str]) -> Mapping[str, Any] | None:
        """Return the price of one instance type, None when the API has none for it."""
        params = {"RegionId": region, "ResourceType": "instance", "InstanceType": instance_type, **terms}
        try:
            body = self._call(region, "DescribePrice", params)
        except Refused:
            return None
        info = body.get("PriceInfo")
        price = info.get("Price") if isinstance(info, Mapping) else None
        return price if isinstance(price, Mapping) else None

    def images(self, region: str, owner: str, states: str = "Available") -> list[dict[str, Any]]:
        """Return the Linux images of an owner: "self", "system" (the provider's own) or "others" (shared with us)."""
        query = {"ImageOwnerAlias": owner, "OSType": "linux", "Status": states}
        call = partial(self._call, region, "DescribeImages")
        return _numbered(call, {"RegionId": region, **query}, ("Images", "Image"), int(PAGE))

    def create_image(self, region: str, instance_id: str, name: str) -> str:
        """Begin saving an instance's disks as an image and return its id."""
        params = {"RegionId": region, "InstanceId": instance_id, "ImageName": name}
        image = text(self._call(region, "CreateImage", params, is_write=True), "ImageId")
        if not image:
            raise OutcomeUnknown("The answer to CreateImage names no image.")
        return image

    def security_groups(self, region: str) -> list[dict[str, Any]]:
        """Return the security groups of a region."""
        query = {"RegionId": region}
        return list(self._pages(region, "DescribeSecurityGroups", query, "SecurityGroups", "SecurityGroup"))

    def key_pairs(self, region: str) -> list[dict[str, Any]]:
        """Return the SSH key pairs of a region."""
        call = partial(self._call, region, "DescribeKeyPairs")
        return _numbered(call, {"RegionId": region}, ("KeyPairs", "KeyPair"), KEY_PAGE)

    def vswitches(self, region: str) -> list[dict[str, Any]]:
        """Return the vSwitches of a region; they belong to another product, VPC."""
        host = VPC_HOST if region in HOSTS else f"vpc.{region}.aliyuncs.com"
        call = partial(self._rpc.call, host, VPC_VERSION, "DescribeVSwitches")
        return _numbered(call, {"RegionId": region}, ("VSwitches", "VSwitch"), VPC_PAGE)

    def may(self, region: str, action: str, params: Mapping[str, str]) -> bool | None:
        """Say by a dry run whether the key may call an action; None when that cannot be told."""
        try:
            self._call(region, action, {**params, "DryRun": "true"})
        except AccessRefused as error:
            if error.reason != Reason.PERMISSION_MISSING:
                raise
            return False
        except Refused as error:
            return True if error.raw_code == DRY_RUN_PASSED else None
        return True

    def _pages(
        self, region: str, action: str, params: Mapping[str, str], outer: str, inner: str
    ) -> Iterator[dict[str, Any]]:
        """Yield the entries of all pages. Raises NotUnderstood when the pages go round in a circle or have no end."""
        token, seen = "", set[str]()
        for _page in range(MAX_PAGES):
            page = {**params, "MaxResults": PAGE, **({"NextToken": token} if token else {})}
            body = self._call(region, action, page)
            yield from _objects(body, outer, inner)
            token = text(body, "NextToken")
            if not token:
                return
            if token in seen:
                break
            seen.add(token)
        raise NotUnderstood(f"The pages of {action} have no end.")


def _numbered(
    call: Callable[[Mapping[str, str]], dict[str, Any]], query: Mapping[str, str], names: tuple[str, str], size: int
) -> list[dict[str, Any]]:
    """Return the entries of all pages of an action that counts its pages. names: of the wrapper and of its entries."""
    found: list[dict[str, Any]] = []
    for page in range(1, MAX_PAGES + 1):
        entries = _objects(call({**query, "PageNumber": str(page), "PageSize": str(size)}), *names)
        found += entries
        if len(entries) < size:
            return found
    raise NotUnderstood(f"The pages of {names[0]} have no end.")


def _entries(body: Mapping[str, Any], outer: str, inner: str) -> list[Any]:
    """Return the list inside its wrapper. Raises NotUnderstood when the wrapper itself is missing."""
    if not isinstance(body.get(outer), Mapping):
        raise NotUnderstood(f"Alibaba Cloud's answer has no {outer}.")
    return wrapped(body, outer, inner)


def _objects(body: Mapping[str, Any], outer: str, inner: str) -> list[dict[str, Any]]:
    return [each for each in _entries(body, outer, inner) if isinstance(each, dict)]


def _strings(body: Mapping[str, Any], outer: str, inner: str) -> list[str]:
    return [each for each in _entries(body, outer, inner) if isinstance(each, str)]


def _spelt_out(found: str) -> list[str]:
    """Return the ids in an entry of a list of ids, which the documentation shows as JSON inside the text."""
    if not found.startswith("["):
        return [found]
    try:
        return [str(each) for each in json.loads(found)]
    except ValueError as error:
        raise NotUnderstood("The list of new instances cannot be read.") from error
