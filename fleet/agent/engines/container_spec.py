"""What a container is made with, and whether it came out so: engines drop silently what they do not know."""

from pathlib import Path
from typing import Any, Final

from fleet.agent.engines.contract import StartError
from fleet.agent.orders import ReplicaOrder

# Bounds of what the engine keeps of a container's output; the agent has it in its own file.
LOG_OPTIONS: Final = {"max-size": "4m", "max-file": "2"}


def creation(client: Any, order: ReplicaOrder, name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Return the arguments of `create_container`: never privileged, never restarted by the engine, cards by UUID."""
    from docker.types import DeviceRequest, LogConfig, Mount

    gpus = [DeviceRequest(driver="nvidia", device_ids=list(order.gpu_uuids), capabilities=[["gpu"]])]
    mounts = [
        Mount(mount.target, str(Path(mount.source).resolve()), type="bind", read_only=mount.is_read_only)
        for mount in order.mounts
    ]
    ports = published(order)
    host = client.create_host_config(
        network_mode="host" if order.port_of_container is None else None,
        port_bindings={f"{inner}/tcp": (order.host or "127.0.0.1", outer) for inner, outer in ports.items()} or None,
        device_requests=gpus if order.gpu_uuids else None,
        shm_size=order.shm_bytes,
        mem_limit=order.memory_limit_bytes,
        mounts=mounts or None,
        log_config=LogConfig(type="json-file", config=dict(LOG_OPTIONS)),
        restart_policy={"Name": "no"},
        security_opt=["no-new-privileges"],
    )
    return {
        "image": order.image,
        "command": order.command or None,
        "name": name,
        "environment": environment(order),
        "labels": labels,
        "ports": list(ports) or None,
        "host_config": host,
    }


def environment(order: ReplicaOrder) -> dict[str, str]:
    """Return the container's variables. Images for cards ask for all of them by default: that is answered here."""
    own = {} if order.gpu_uuids else {"NVIDIA_VISIBLE_DEVICES": "void"}
    return {"PYTHONUNBUFFERED": "1", **order.environment, **order.secrets, **own}


def published(order: ReplicaOrder) -> dict[int, int]:
    """Return port inside → port of the machine, empty for a container in the machine's own network."""
    if order.port_of_container is None:
        return {}
    ports = {order.port_of_container: order.port}
    if order.metrics_port is not None and order.metrics_port != order.port:
        ports[order.metrics_port] = order.metrics_port
    return ports


def mismatch(order: ReplicaOrder, seen: dict[str, Any]) -> StartError | None:
    """Return what is not as it was asked, None when all is."""
    host = seen.get("HostConfig") or {}
    granted = {uuid for request in host.get("DeviceRequests") or [] for uuid in request.get("DeviceIDs") or []}
    absent = [uuid for uuid in order.gpu_uuids if uuid not in granted]
    if absent:
        said = f"The container engine did not grant {', '.join(absent)}: it dropped the request without a word."
        return StartError("gpu_missing", f"{said} Is the NVIDIA Container Toolkit set up?", is_permanent=True)
    if host.get("Privileged"):
        return StartError("policy", "The container engine made it privileged, which nobody asked.", is_permanent=True)
    if order.shm_bytes and int(host.get("ShmSize") or 0) < order.shm_bytes:
        return StartError(
            "spawn_failed", f"The container has {host.get('ShmSize')} bytes of shared memory, not {order.shm_bytes}."
        )
    if order.memory_limit_bytes and int(host.get("Memory") or 0) != order.memory_limit_bytes:
        return StartError("spawn_failed", "The container engine did not take the memory limit.", is_permanent=True)
    targets = {mount.get("Destination") for mount in seen.get("Mounts") or []}
    for mount in order.mounts:
        if mount.target not in targets:
            return StartError("spawn_failed", f"The container lacks the folder {mount.target}.", is_permanent=True)
    return None
