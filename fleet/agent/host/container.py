"""Whether the agent itself runs in a container, and in which kind."""

import os
from collections.abc import Mapping
from pathlib import Path


def container_kind(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> str:
    """Return kubernetes, docker, podman, lxc or the like; empty on a machine or virtual machine of its own."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    named = environment.get("container", "") or _first_process_says(root)
    if named:
        return named[:32]
    return _cgroup_says(root)


def _first_process_says(root: Path) -> str:
    """Return what the container manager told its init; only root can read it."""
    try:
        variables = (root / "proc/1/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    for variable in variables:
        name, _, value = variable.partition(b"=")
        if name == b"container":
            return value.decode(errors="replace")
    return ""


def _cgroup_says(root: Path) -> str:
    try:
        text = (root / "proc/1/cgroup").read_text()
    except OSError:
        return ""
    for kind, mark in (("kubernetes", "kubepods"), ("docker", "docker"), ("podman", "libpod"), ("lxc", "/lxc")):
        if mark in text:
            return kind
    return ""
