"""Configuration of an endpoint's replicas for those who run nginx or HAProxy themselves."""

from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet

from endpoints.api.fields import endpoint_named
from endpoints.gateway.haproxy import render_haproxy
from endpoints.gateway.nginx import render_nginx
from endpoints.services.routing import route_for_others
from fleet.agent.orders import Route
from panel.core.errors import InvalidInput

_PORT = OpenApiParameter("port", int, description="On which it listens; 8080 when left out.")


def _port(request: Request) -> int:
    given = request.query_params.get("port", "8080")
    if not (given.isascii() and given.isdecimal() and len(given) <= 5 and 1 <= int(given) <= 65_535):
        raise InvalidInput(_("A port is from 1 to 65535."), field="port")
    return int(given)


def _route(name: str) -> Route:
    return route_for_others(endpoint_id=endpoint_named(name).pk)


def _file(text: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


class ProxyFiles(GenericViewSet[Any]):
    """Files that change with the replicas: fetch them again when those do."""

    @extend_schema(
        summary="Configure your own nginx", parameters=[_PORT], responses={(200, "text/plain"): OpenApiTypes.STR}
    )
    @action(detail=True, methods=["get"], url_path=r"nginx\.conf")
    def nginx_conf(self, request: Request, name: str) -> HttpResponse:
        """Return a file for nginx's conf.d; the key that replicas ask for is left out."""
        return _file(render_nginx([_route(name)], port=_port(request)), f"{name}.conf")

    @extend_schema(
        summary="Configure your own HAProxy", parameters=[_PORT], responses={(200, "text/plain"): OpenApiTypes.STR}
    )
    @action(detail=True, methods=["get"], url_path=r"haproxy\.cfg")
    def haproxy_cfg(self, request: Request, name: str) -> HttpResponse:
        """Return a file for HAProxy, which has one queue for all replicas: better where each takes few requests at once."""
        return _file(render_haproxy([_route(name)], port=_port(request)), f"{name}.cfg")
