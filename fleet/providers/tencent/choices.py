"""What an account has to choose from when it orders, and the images that it saved."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.providers.base import Snapshot
from fleet.providers.gpu_models import GIB
from fleet.providers.reading import text, time, whole
from fleet.providers.tencent.client import CvmClient

IMAGE_NAME_LENGTH: Final = 60
IMAGE_KINDS: Final = ("PRIVATE_IMAGE", "SHARED_IMAGE", "PUBLIC_IMAGE")


def choices_of(client: CvmClient, region: str, name: str) -> list[tuple[str, str, str]]:
    """Return (id, label, place) of everything in a region for one order field; nothing for fields that are typed."""
    if name == "image":
        images = client.images(region, IMAGE_KINDS)
        return [(text(each, "ImageId"), text(each, "ImageName"), region) for each in images]
    if name == "security_group":
        groups = client.security_groups(region)
        return [(text(each, "SecurityGroupId"), text(each, "SecurityGroupName"), region) for each in groups]
    if name == "subnet":
        subnets = client.subnets(region)
        return [(text(each, "SubnetId"), text(each, "SubnetName"), text(each, "Zone")) for each in subnets]
    if name == "vpc":
        return [(text(each, "VpcId"), "", region) for each in client.subnets(region)]
    if name == "key":
        return [(text(each, "KeyId"), text(each, "KeyName"), region) for each in client.keys(region)]
    return []


def images_of(client: CvmClient, region: str) -> list[Snapshot]:
    """Return the account's own images in a region, also those still being saved; an id is what an order takes."""
    return [_snapshot(image) for image in client.images(region, IMAGE_KINDS[:1])]


def _snapshot(image: Mapping[str, Any]) -> Snapshot:
    size_gib = whole(image.get("ImageSize"))
    return Snapshot(
        external_id=text(image, "ImageId"),
        name=text(image, "ImageName"),
        status=text(image, "ImageState"),
        is_ready=text(image, "ImageState") == "NORMAL",
        created_at=time(image.get("CreatedTime")),
        size_bytes=size_gib * GIB if size_gib else None,
    )
