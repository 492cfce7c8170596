"""How servers serve, over the API: where their replicas are reached, mirrors, cordon and evacuation."""

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from endpoints.enums import RuntimeChoice
from endpoints.models import ServingHost
from endpoints.services.hosts import SETTABLE, server_cordon, server_uncordon, serving_update
from endpoints.services.placing import serving_of
from fleet.models import Server
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import NotFound


class ServingSerializer(serializers.ModelSerializer[ServingHost]):
    """How a server serves replicas, and what its agent can run."""

    class Meta:
        model = ServingHost
        fields = [
            "server", *SETTABLE, "is_cordoned", "is_evacuating", "cordon_reason", "runtimes", "unusable", "reported_at",
        ]  # fmt: skip
        read_only_fields = fields


class ServingSettingsSerializer(serializers.Serializer[Any]):
    """What a person says of it."""

    address = serializers.CharField(
        max_length=253, allow_blank=True, required=False, help_text="Where gateways reach its replicas."
    )
    first_port = serializers.IntegerField(min_value=1024, max_value=65_535, required=False)
    last_port = serializers.IntegerField(min_value=1024, max_value=65_535, required=False)
    runtime = serializers.ChoiceField(RuntimeChoice.choices, required=False)
    hf_endpoint = serializers.CharField(max_length=200, allow_blank=True, required=False)
    uses_modelscope = serializers.BooleanField(required=False)
    image_prefix = serializers.CharField(max_length=200, allow_blank=True, required=False)
    models_dir = serializers.CharField(max_length=500, allow_blank=True, required=False)


class CordonSerializer(serializers.Serializer[Any]):
    """Why, and whether what is there moves away."""

    is_evacuating = serializers.BooleanField(default=False, help_text="Move the replicas that are there elsewhere.")
    reason = serializers.CharField(max_length=200, allow_blank=True, default="")


class ServingViewSet(viewsets.GenericViewSet[ServingHost]):
    """How servers serve, by the id of the server."""

    queryset = ServingHost.objects.none()
    serializer_class = ServingSerializer
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = {
        "retrieve": Capability.FLEET_VIEW,
        **dict.fromkeys(("partial_update", "cordon", "uncordon"), Capability.SERVERS_MANAGE),
    }

    @extend_schema(summary="Show how a server serves", responses=ServingSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (a method of the framework)
        """Return what is said of it, the defaults when nothing is."""
        server = Server.objects.select_related("serving").filter(pk=int(pk)).first()
        if server is None:
            raise NotFound(_("There is no such server."))
        return Response(ServingSerializer(serving_of(server)).data)

    @extend_schema(summary="Change how a server serves", request=ServingSettingsSerializer, responses=ServingSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Replicas that run keep what they were started with."""
        body = body_of(request, ServingSettingsSerializer, partial=True)
        serving = serving_update(server_id=int(pk), actor=Actor.from_request(request), **body)
        return Response(ServingSerializer(serving).data)

    @extend_schema(summary="Place nothing new on a server", request=CordonSerializer, responses=ServingSerializer)
    @action(detail=True, methods=["post"])
    def cordon(self, request: Request, pk: str) -> Response:
        """With `is_evacuating`, its replicas move elsewhere."""
        body = body_of(request, CordonSerializer)
        serving = server_cordon(server_id=int(pk), actor=Actor.from_request(request), **body)
        return Response(ServingSerializer(serving).data)

    @extend_schema(summary="Let a server take replicas again", request=None, responses=ServingSerializer)
    @action(detail=True, methods=["post"])
    def uncordon(self, request: Request, pk: str) -> Response:
        """Undo a cordon."""
        serving = server_uncordon(server_id=int(pk), actor=Actor.from_request(request))
        return Response(ServingSerializer(serving).data)
