"""What agents say of probes."""

from typing import Final

from django.http import HttpRequest, HttpResponse

from fleet.agent import orders
from fleet.views import agent_endpoint, bearer_agent, read_body
from monitoring.probing.services import agent_results

RESULTS_BYTES: Final = 4 * 1024 * 1024


@agent_endpoint("POST")
def probes(request: HttpRequest) -> HttpResponse:
    """Take results; those that are stored already change nothing."""
    identity = bearer_agent(request)
    agent_results(identity=identity, report=read_body(request, orders.ProbesReport, limit=RESULTS_BYTES))
    return HttpResponse(status=204)
