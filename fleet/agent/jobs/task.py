"""What a job's own process is given on its standard input, and what it says on its standard output, a line of JSON each."""

from typing import Annotated, Any

from msgspec import Meta, Struct


class Task(Struct):
    """One job to do. The token is for measuring the way to the panel; directory: where files may be made for a while.

    vantage: this machine's name as a place that probes. probe_networks: private ones that its owner lets probes go to;
    own_ports: of its own replicas, which are probed on loopback.
    """

    job_id: int
    kind: str
    arguments: dict[str, Any]
    seconds: float
    panel_url: str
    agent_token: str
    ca_file: str
    directory: str
    allow_private_targets: bool = False
    tell_process_names: bool = True
    vantage: str = ""
    probe_networks: list[str] = []
    own_ports: list[int] = []


class Said(Struct, omit_defaults=True):
    """One line: how far it is, or, as the last line, what came of it. failed: a reason."""

    percent: Annotated[int, Meta(ge=0, le=100)] = 0
    step: str = ""
    failed: str = ""
    detail: str = ""
    result: dict[str, Any] | None = None
