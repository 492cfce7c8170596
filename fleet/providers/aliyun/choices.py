"""What an account has to choose from when it orders, and the images that it saved."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.providers.aliyun.client import IMAGE_STATES, EcsClient
from fleet.providers.base import Snapshot
from fleet.providers.gpu_models import GIB
from fleet.providers.reading import text, time, whole

# The account's own and shared images first, for among those are the ones with drivers and models in them.
IMAGE_OWNERS: Final = ("self", "others", "system")


def choices_of(client: EcsClient, region: str, name: str) -> list[tuple[str, str, str]]:
    """Return (id, label, place) of everything in a region for one order field; nothing for fields that are typed."""
    if name == "image":
        images = [image for owner in IMAGE_OWNERS for image in client.images(region, owner)]
        return [(text(each, "ImageId"), text(each, "ImageName"), region) for each in images]
    if name == "security_group":
        groups = client.security_groups(region)
        return [(text(each, "SecurityGroupId"), text(each, "SecurityGroupName"), region) for each in groups]
    if name == "vswitch":
        switches = client.vswitches(region)
        return [(text(each, "VSwitchId"), text(each, "VSwitchName"), text(each, "ZoneId")) for each in switches]
    if name == "key_pair":
        return [(text(each, "KeyPairName"), text(each, "KeyPairName"), region) for each in client.key_pairs(region)]
    return []


def images_of(client: EcsClient, region: str) -> list[Snapshot]:
    """Return the account's own images in a region, also those still being saved; an id is what an order takes."""
    return [_snapshot(image) for image in client.images(region, "self", IMAGE_STATES)]


def _snapshot(image: Mapping[str, Any]) -> Snapshot:
    size_gib = whole(image.get("Size"))
    return Snapshot(
        external_id=text(image, "ImageId"),
        name=text(image, "ImageName"),
        status=text(image, "Status"),
        is_ready=text(image, "Status") == "Available",
        created_at=time(image.get("CreationTime")),
        size_bytes=size_gib * GIB if size_gib else None,
    )
