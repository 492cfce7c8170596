"""Every kind of probe there is."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from fleet.agent.probes import dns, grpc_health, icmp, kserve, plain_http, plain_tcp, streams
from fleet.agent.probes.job import Job
from fleet.agent.probes.target import Kind

PROBES: Final[Mapping[Kind, Callable[[Job], Awaitable[None]]]] = {
    "http": plain_http.probe,
    "tcp": plain_tcp.probe,
    "tls": plain_tcp.probe,
    "dns": dns.probe,
    "chat": streams.probe,
    "completion": streams.probe,
    "kserve_ready": kserve.probe_ready,
    "kserve_infer": kserve.probe_infer,
    "grpc_health": grpc_health.probe,
    "icmp": icmp.probe,
}
# Those whose connection can be used again.
WITH_CONNECTION: Final = frozenset({"http", "chat", "completion", "kserve_ready", "kserve_infer", "grpc_health"})
