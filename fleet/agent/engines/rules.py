"""What this machine lets be run, whatever the panel orders: the policy's word on one order."""

import ipaddress
import socket
from pathlib import Path

from fleet.agent.orders import Mount, ReplicaOrder
from fleet.agent.policy import Policy


def refusal(order: ReplicaOrder, policy: Policy) -> str:
    """Return why an order is not followed here, empty when it may be."""
    if not 1 <= order.port <= 65_535:
        return f"{order.port} is no port."
    if not _is_of_this_machine(order.host):
        return f"The order's host {order.host} is no address of this machine."
    if order.runtime == "process":
        return "" if policy.allow_processes else "This machine's policy.toml has allow_processes = false."
    return _container_refusal(order, policy)


def _container_refusal(order: ReplicaOrder, policy: Policy) -> str:
    if not policy.allow_containers:
        return "This machine's policy.toml has allow_containers = false."
    if policy.image_prefixes and not any(_is_below(order.image, prefix) for prefix in policy.image_prefixes):
        allowed = ", ".join(policy.image_prefixes)
        return f"The image {order.image} is not among those that this machine's policy.toml allows ({allowed})."
    problems = (_mount_problem(mount, policy) for mount in order.mounts)
    return next((problem for problem in problems if problem), "")


def _is_below(image: str, prefix: str) -> bool:
    """Say whether an image's name begins with a prefix at the border of a name: `vllm/` allows no `vllm-evil/x`."""
    rest = image[len(prefix) :]
    return image.startswith(prefix) and (prefix.endswith("/") or rest == "" or rest[0] in "/:@")


def _mount_problem(mount: Mount, policy: Policy) -> str:
    if not mount.source.startswith("/") or not mount.target.startswith("/"):
        return f"The mount {mount.source} → {mount.target} has a path that is not absolute."
    source = Path(mount.source).resolve()
    for folder in policy.mount_folders:
        allowed = Path(folder).resolve()
        if source == allowed or allowed in source.parents:
            return ""
    folders = ", ".join(policy.mount_folders) or "none"
    return (
        f"The folder {mount.source} is not below those that this machine's policy.toml lets containers see ({folders})."
    )


def _is_of_this_machine(host: str) -> bool:
    """Say whether an address is one that an engine here can listen on."""
    if host in {"", "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True
