"""What agents say and ask about replicas and gateways."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from endpoints.models import Gateway
from endpoints.services.gateways import gateway_report
from endpoints.services.observing import logs_report, replicas_report
from endpoints.services.routing import routes_since
from fleet.agent import orders
from fleet.views import agent_endpoint, answer, bearer_agent, read_body
from panel.core.errors import InvalidInput, NotFound

REPLICAS_BYTES: Final = 524_288
LOGS_BYTES: Final = 5 * 1024 * 1024
TRAFFIC_BYTES: Final = 8 * 1024 * 1024


@agent_endpoint("POST")
def replicas(request: HttpRequest) -> HttpResponse:
    """Take what an agent says of its server's replicas."""
    identity = bearer_agent(request)
    replicas_report(identity=identity, report=read_body(request, orders.ReplicasReport, limit=REPLICAS_BYTES))
    return HttpResponse(status=204)


@agent_endpoint("POST")
def replica_logs(request: HttpRequest) -> HttpResponse:
    """Take lines of the logs of its replicas."""
    identity = bearer_agent(request)
    logs_report(identity=identity, report=read_body(request, orders.LogsReport, limit=LOGS_BYTES))
    return HttpResponse(status=204)


@agent_endpoint("GET")
def routes(request: HttpRequest) -> HttpResponse:
    """Answer what changed of the routes since `?have=`; everything without it."""
    identity = bearer_agent(request)
    gateway = Gateway.objects.filter(server_id=identity.server_id).first()
    if gateway is None:
        raise NotFound(_("This server is not a gateway."))
    try:
        have = int(request.GET.get("have", "0"))
    except ValueError:
        raise InvalidInput(_("`have` is a version.")) from None
    return answer(request, routes_since(have=have, gateway=gateway))


@agent_endpoint("POST")
def traffic(request: HttpRequest) -> HttpResponse:
    """Take what went through an agent's gateway."""
    identity = bearer_agent(request)
    gateway_report(identity=identity, report=read_body(request, orders.TrafficReport, limit=TRAFFIC_BYTES))
    return HttpResponse(status=204)
