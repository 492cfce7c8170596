"""What an endpoint's replicas say, together: for people and programs that do not know which replica to ask."""

from typing import Any, Final

from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet

from endpoints.api.fields import endpoint_named
from endpoints.selectors import replica_list, replica_log_text
from panel.core.errors import InvalidInput

MOST_LINES: Final = 5_000


def _lines(request: Request) -> int:
    given = request.query_params.get("lines", "200")
    if not (given.isascii() and given.isdecimal() and len(given) <= 4 and 1 <= int(given) <= MOST_LINES):
        raise InvalidInput(_("`lines` is from 1 to %(most)s.") % {"most": MOST_LINES}, field="lines")
    return int(given)


class EndpointLogs(GenericViewSet[Any]):
    """The ends of logs."""

    @extend_schema(
        summary="Read the last lines of every replica",
        parameters=[OpenApiParameter("lines", int, description="Of each replica; 200 when left out.")],
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    @action(detail=True, methods=["get"])
    def logs(self, request: Request, name: str) -> HttpResponse:
        """Return the newest lines of each replica that has not ended, else of the last one that did."""
        lines = _lines(request)
        endpoint = endpoint_named(name)
        replicas = replica_list(endpoint=endpoint.pk, is_open=True) or replica_list(endpoint=endpoint.pk)[:1]
        parts = []
        for replica in replicas:
            kept = replica_log_text(replica=replica.pk).splitlines()[-lines:]
            where = f"of revision {replica.revision.number} on {replica.server.name}, {replica.state}"
            parts.append("\n".join([f"==> replica {replica.pk} {where} <==", *kept, ""]))
        response = HttpResponse("\n".join(parts), content_type="text/plain; charset=utf-8")
        response["X-Content-Type-Options"] = "nosniff"
        return response
