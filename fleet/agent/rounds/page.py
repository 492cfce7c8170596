"""The engine's own page of metrics, fetched by the prober's own means: checked addresses, bounded, within its time."""

from typing import Final

from msgspec.structs import replace

from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.deadline import DeadlineError, within
from fleet.agent.probes.dial import Way
from fleet.agent.probes.job import Job
from fleet.agent.probes.plain_http import Body
from fleet.agent.probes.resolver import Resolver
from fleet.agent.probes.result import ProbeError
from fleet.agent.probes.target import Target
from fleet.agent.probes.tls import Contexts
from fleet.agent.probes.web import request_of

PAGE_SECONDS: Final = 5.0
PAGE_BYTES: Final = 4 * 1024 * 1024


class Pages:
    """Fetches one page of a target's own machine, again and again."""

    def __init__(self, target: Target, path: str, port: int | None, vantage: str, rules: Rules) -> None:
        self._target = replace(
            target, kind="http", method="GET", path=path, port=port or target.port, body=None, max_body_bytes=PAGE_BYTES
        )
        self._vantage = vantage
        self._way = Way(rules, Resolver(), Contexts())

    async def fetch(self) -> str:
        """Return the page, "" when it could not be had."""
        job = Job(self._way, self._target, self._vantage, "")
        body = Body(PAGE_BYTES)
        try:
            answer = await within(PAGE_SECONDS, job.ask(request_of(self._target, self._vantage), body.add))
        except (ProbeError, DeadlineError):
            return ""
        finally:
            job.drop()
        return body.text if answer.status == 200 else ""
