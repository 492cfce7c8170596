"""TCP and TLS: whether a connection comes about, and how long the certificate is good for."""

import time

from fleet.agent.probes.dial import connect
from fleet.agent.probes.job import Job


async def probe(job: Job) -> None:
    """Connect, with TLS for that kind. Raises ProbeError: dns, connect, tls."""
    link = await connect(job.way, job.target, job.trace, protocol="" if job.target.kind == "tls" else None)
    link.abort()
    job.trace.phase = "done"
    job.trace.ended = link.secured_at or time.monotonic()
