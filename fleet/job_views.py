"""What agents ask of the panel while they do a job: to be heard about it, and bytes to measure the way here with."""

import os
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from fleet.agent import wire
from fleet.models import Job
from fleet.services.agents import AgentIdentity
from fleet.services.jobs import job_report
from fleet.views import agent_endpoint, answer, bearer_agent, read_body
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, RateLimited, TooLarge
from panel.core.rates import Rate, count_attempt

# A result of 64 cards fits into it four times.
REPORT_BYTES: Final = 262_144
SPEED_BYTES: Final = 4 * 1024 * 1024
# Of one agent: a check takes at most 40 portions each way.
SPEED_RATE: Final = Rate(limit=120, period_seconds=60)
PANEL_TIME_HEADER: Final = "Fleetdeck-Panel-Time-Ms"
# Random, so that no proxy on the way makes it smaller; the same for all, so that it costs nothing.
_BLOCK: Final = os.urandom(65_536)


@agent_endpoint("POST")
def job(request: HttpRequest, job_id: int) -> HttpResponse:
    """Take an agent's word about one of its jobs; answer how the job stands."""
    identity = bearer_agent(request)
    report = read_body(request, wire.JobReport, limit=REPORT_BYTES)
    return answer(request, job_report(identity=identity, job_id=job_id, report=report))


def _admit(identity: AgentIdentity) -> None:
    """Raise Conflict unless a job of this agent is under way, RateLimited when it asks too often."""
    if not Job.objects.filter(server_id=identity.server_id, ended_at=None).exclude(claimed_at=None).exists():
        raise Conflict(_("The way to the panel is measured by a job that is under way; there is none."))
    try:
        wait = count_attempt("speed", str(identity.agent_id), SPEED_RATE)
    except RedisError:
        return  # bounded by the job's own time all the same
    if wait is not None:
        raise RateLimited(_("That is enough for a measurement. Wait a minute."), retry_after_seconds=wait)


def _stamped(response: HttpResponse) -> HttpResponse:
    response[PANEL_TIME_HEADER] = str(round(now().timestamp() * 1000))
    return response


@agent_endpoint("GET")
def downlink(request: HttpRequest) -> HttpResponse:
    """Answer `?bytes=` (4 MiB at most) bytes that do not compress, with the panel's clock in a header."""
    _admit(bearer_agent(request))
    try:
        size = int(request.GET.get("bytes", "0"))
    except ValueError:
        raise InvalidInput(_("`bytes` is a number.")) from None
    if not 0 <= size <= SPEED_BYTES:
        raise InvalidInput(_("`bytes` is at most %(limit)s.") % {"limit": SPEED_BYTES})
    body = (_BLOCK * (size // len(_BLOCK) + 1))[:size]
    return _stamped(HttpResponse(body, content_type="application/octet-stream"))


@agent_endpoint("POST")
def uplink(request: HttpRequest) -> HttpResponse:
    """Read a body of 4 MiB at most and forget it; answers nothing (204)."""
    _admit(bearer_agent(request))
    size = 0
    while block := request.read(len(_BLOCK)):
        size += len(block)
        if size > SPEED_BYTES:
            raise TooLarge(_("The body is larger than %(limit)s bytes.") % {"limit": SPEED_BYTES})
    return _stamped(HttpResponse(status=204))
