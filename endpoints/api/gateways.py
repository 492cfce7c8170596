"""Gateways over the API."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from endpoints.models import Gateway
from endpoints.selectors import gateway_list, gateway_url
from endpoints.services.gateways import gateway_create, gateway_delete, gateway_update
from endpoints.services.routing import routing_version
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability

_MANAGE = Capability.ENDPOINTS_MANAGE


class GatewaySerializer(serializers.ModelSerializer[Gateway]):
    """A server that takes callers' requests."""

    server_name = serializers.CharField(source="server.name", read_only=True)
    url = serializers.SerializerMethodField()
    routes_version = serializers.SerializerMethodField()

    class Meta:
        model = Gateway
        fields = [
            "id", "server", "server_name", "port", "public_url", "certificate_file", "key_file", "url", "state", "detail",
            "data_plane", "applied_version", "routes_version", "reported_at", "created_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.CharField())
    def get_url(self, gateway: Gateway) -> str:
        """Return where callers reach it."""
        return gateway_url(gateway)

    @extend_schema_field(serializers.IntegerField())
    def get_routes_version(self, _gateway: Gateway) -> int:
        """Return the newest version of the routes; when applied_version is lower, it is on its way."""
        return routing_version()


class GatewaySettingsSerializer(serializers.Serializer[Any]):
    """How a gateway listens."""

    port = serializers.IntegerField(min_value=1, max_value=65_535, required=False)
    public_url = serializers.CharField(max_length=300, allow_blank=True, required=False)
    certificate_file = serializers.CharField(
        max_length=500, allow_blank=True, required=False, help_text="A path on that machine; empty: plain HTTP."
    )
    key_file = serializers.CharField(max_length=500, allow_blank=True, required=False)


class GatewayCreateSerializer(GatewaySettingsSerializer):
    """A new gateway."""

    server = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


@extend_schema_view(list=extend_schema(summary="List gateways"), retrieve=extend_schema(summary="Show a gateway"))
class GatewayViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Gateway]):
    """Where callers arrive."""

    queryset = Gateway.objects.none()
    serializer_class = GatewaySerializer
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        **dict.fromkeys(("create", "partial_update", "destroy"), _MANAGE),
    }

    def get_queryset(self) -> QuerySet[Gateway]:
        """Return every gateway."""
        return gateway_list()

    @extend_schema(
        summary="Make a server a gateway", request=GatewayCreateSerializer, responses={201: GatewaySerializer}
    )
    def create(self, request: Request) -> Response:
        """Its agent starts the data plane."""
        body = body_of(request, GatewayCreateSerializer)
        gateway = gateway_create(server_id=body.pop("server"), actor=Actor.from_request(request), **body)
        return Response(GatewaySerializer(gateway).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Change a gateway", request=GatewaySettingsSerializer, responses=GatewaySerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change how it listens."""
        body = body_of(request, GatewaySettingsSerializer, partial=True)
        gateway = gateway_update(gateway_id=int(pk), actor=Actor.from_request(request), **body)
        return Response(GatewaySerializer(gateway).data)

    @extend_schema(summary="Give up a gateway", responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Callers who use its address get no answer any more."""
        gateway_delete(gateway_id=int(pk), actor=Actor.from_request(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
