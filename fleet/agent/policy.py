"""What this machine allows, whatever the panel asks: a local file that the panel can neither read nor change."""

import ipaddress
import sys
from pathlib import Path
from typing import Annotated, Final

import msgspec

if sys.version_info >= (3, 11):  # noqa: UP036 (the agent, unlike the panel, runs on 3.10)
    import tomllib
else:  # rented servers often run Ubuntu 22.04 and its Python 3.10
    import tomli as tomllib

TEMPLATE: Final = """\
# What this machine allows, whatever the panel asks. The panel cannot change this file. Restart the agent after a change.

# Never sample faster than this, in seconds (1 to 60).
# minimum_sample_interval_seconds = 1.0

# Calls that keep a card's driver busy for 40 ms a round, on cards without PCIe byte counters.
# allow_pcie_throughput = true

# Names and users of the processes on the cards; without, the panel gets pids and memory.
# tell_process_names = true

# XIDs from the kernel's log, beside those that NVML tells.
# read_kernel_log = true

# Kinds of jobs that are refused. "acceptance" measures cards, disk and network for about a minute when a person asks;
# "diagnose" and "probe_round" find out for some minutes why an endpoint is slow (from here only where allow_probes is true).
# forbidden_jobs = []

# Let jobs measure the way to private and local addresses, if a person names one.
# allow_private_targets = false

# Let the panel run engines here: as processes of the agent's own user, and in containers (never privileged ones).
# allow_processes = true
# allow_containers = true
# Only images whose names begin with one of these, such as "docker.io/vllm/"; without any, all.
# image_prefixes = []
# Folders of this machine that containers may see, with all that is below them.
# mount_folders = ["/srv/models"]
# Where the Docker Engine API listens, such as "unix:///run/docker.sock"; empty: DOCKER_HOST, then the usual sockets.
# container_socket = ""

# Let the panel make a gateway of this machine: callers of endpoints come in here, and are passed on to replicas.
# allow_gateway = true

# Let the panel measure from here how endpoints answer. Private networks that such probes may go to, beside what is public and
# this machine's own replicas, such as ["10.0.0.0/8"]. Never: link-local addresses and clouds' metadata services.
# allow_probes = true
# probe_networks = []

# How much waits here while the panel is away; the oldest goes first, and is counted.
# spool_megabytes = 64
# spool_hours = 24
"""


class PolicyError(Exception):
    """The file is not what it should be; the sentence says where."""


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file's settings; the defaults hold where it has none."""

    minimum_sample_interval_seconds: Annotated[float, msgspec.Meta(ge=1, le=60)] = 1.0
    allow_pcie_throughput: bool = True
    tell_process_names: bool = True
    read_kernel_log: bool = True
    forbidden_jobs: Annotated[list[str], msgspec.Meta(max_length=100)] = []
    allow_private_targets: bool = False
    allow_processes: bool = True
    allow_containers: bool = True
    image_prefixes: Annotated[list[str], msgspec.Meta(max_length=100)] = []
    mount_folders: Annotated[list[str], msgspec.Meta(max_length=100)] = msgspec.field(
        default_factory=lambda: ["/srv/models"]
    )
    container_socket: str = ""
    allow_gateway: bool = True
    allow_probes: bool = True
    probe_networks: Annotated[list[str], msgspec.Meta(max_length=100)] = []
    spool_megabytes: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 64
    spool_hours: Annotated[float, msgspec.Meta(gt=0, le=720)] = 24.0


def load_policy(path: Path) -> Policy:
    """Return the policy in a file, the defaults when there is none. Raises PolicyError."""
    try:
        policy = msgspec.convert(tomllib.loads(path.read_text()), Policy)
        for network in policy.probe_networks:
            ipaddress.ip_network(network, strict=False)
    except FileNotFoundError:
        return Policy()
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise PolicyError(f"{path}: {error}") from error
    return policy
