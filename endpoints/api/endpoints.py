"""Endpoints over the API: made, changed, scaled, rolled, deleted; configuration for those who run their own proxy."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from endpoints.api.fields import GATE_HELP, PlacementSerializer, endpoint_named, spec_of
from endpoints.api.golive import EndpointGoLive
from endpoints.api.latency import EndpointLatencies
from endpoints.api.logs import EndpointLogs
from endpoints.api.proxies import ProxyFiles
from endpoints.api.traffic import EndpointTrafficSeries, TrafficSerializer, traffic_body
from endpoints.enums import Phase
from endpoints.models import Endpoint
from endpoints.selectors import endpoint_list, endpoint_urls, rollout_open
from endpoints.services.endpoints import BOUNDS, endpoint_create, endpoint_delete, endpoint_scale, endpoint_update
from endpoints.services.rollouts import (
    endpoint_restart,
    endpoint_rollback,
    rollout_cancel,
    rollout_pause,
    rollout_resume,
)
from endpoints.traffic import WINDOWS
from fleet.api.filters import SelectorFilters, any_of, text
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability

_MANAGE = Capability.ENDPOINTS_MANAGE


class EndpointSerializer(serializers.ModelSerializer[Endpoint]):
    """What clients call, and how it is."""

    active_revision = serializers.IntegerField(source="active_revision.number", default=None, read_only=True)
    target_revision = serializers.IntegerField(source="target_revision.number", default=None, read_only=True)
    engine = serializers.SerializerMethodField()
    ready = serializers.IntegerField(read_only=True, help_text="Replicas that take requests.")
    pending = serializers.IntegerField(read_only=True, help_text="Replicas that are wanted and on their way.")

    class Meta:
        model = Endpoint
        fields = [
            "id", "name", "description", "project", "phase", "phase_reason", "phase_changed_at", "engine",
            "desired_replicas", "desired_source", "ready", "pending", "active_revision", "target_revision",
            "placement", "hosts", "requires_key", *BOUNDS, "created_at", "created_by_name", "deleting_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.CharField())
    def get_engine(self, endpoint: Endpoint) -> str:
        """Return the engine that serves, else the one that is rolled out; empty when there is neither."""
        revision = endpoint.active_revision or endpoint.target_revision
        return revision.engine if revision is not None else ""


class EndpointDetailSerializer(EndpointSerializer):
    """An endpoint with its addresses and the rollout that is under way."""

    urls = serializers.SerializerMethodField()
    rollout = serializers.SerializerMethodField()

    class Meta(EndpointSerializer.Meta):
        fields = [*EndpointSerializer.Meta.fields, "urls", "rollout"]
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.URLField()))
    def get_urls(self, endpoint: Endpoint) -> list[str]:
        """Return one address for each gateway."""
        return endpoint_urls(endpoint)

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_rollout(self, endpoint: Endpoint) -> int | None:
        """Return the id of the open rollout."""
        rollout = rollout_open(endpoint=endpoint.pk)
        return rollout.pk if rollout is not None else None


class SettingsSerializer(serializers.Serializer[Any]):
    """What may change without a new revision."""

    description = serializers.CharField(max_length=500, allow_blank=True, required=False)
    project = serializers.CharField(max_length=64, allow_blank=True, required=False)
    placement = PlacementSerializer(required=False)
    hosts = serializers.ListField(child=serializers.CharField(max_length=100), max_length=20, required=False)
    requires_key = serializers.BooleanField(required=False)
    in_flight_limit = serializers.IntegerField(
        required=False, min_value=1, max_value=100_000, help_text="Requests at once in each gateway; more get 429."
    )
    in_flight_per_replica = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=100_000,
        help_text="Requests at once for each replica in each gateway; null: engines queue by themselves.",
    )  # fmt: skip
    first_byte_seconds = serializers.FloatField(
        required=False, min_value=1, max_value=3600, help_text="Longer than the longest prefill."
    )
    idle_seconds = serializers.FloatField(
        required=False, min_value=1, max_value=3600, help_text="Between two pieces of a stream."
    )
    lost_after_seconds = serializers.IntegerField(
        required=False, min_value=30, max_value=86_400, help_text="Until replicas of a silent server go elsewhere."
    )
    rollout_deadline_seconds = serializers.IntegerField(
        required=False, min_value=30, max_value=86_400, help_text="Until a new replica must be ready."
    )


class EndpointCreateSerializer(SettingsSerializer):
    """A new endpoint with its first revision."""

    name = serializers.RegexField(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", help_text="A part of its address.")
    desired_replicas = serializers.IntegerField(min_value=0, max_value=256, default=1)
    spec = serializers.JSONField(help_text="What runs: see `engines/` for each engine's arguments.")
    gpus = serializers.IntegerField(
        min_value=0, max_value=16, required=False, allow_null=True, default=None,
        help_text="Of each replica; left out: as many as its tensor-parallel size. 0: it needs none.",
    )  # fmt: skip
    note = serializers.CharField(max_length=500, allow_blank=True, default="")
    gate = serializers.DictField(required=False, allow_null=True, default=None, help_text=GATE_HELP)


class ScaleSerializer(serializers.Serializer[Any]):
    """How many replicas are wanted."""

    desired_replicas = serializers.IntegerField(min_value=0, max_value=256)
    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class RollbackSerializer(serializers.Serializer[Any]):
    """To which revision."""

    revision = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, help_text="Left out: the last one that served before this."
    )


class EndpointFilters(SelectorFilters):
    """Filters of endpoints."""

    phase = any_of(Phase.choices, "In this phase.")
    project = text("Exactly this project.")
    search = text("Part of the name or description.")
    select: ClassVar[Any] = staticmethod(endpoint_list)


@extend_schema_view(list=extend_schema(summary="List endpoints"), retrieve=extend_schema(summary="Show an endpoint"))
class EndpointViewSet(
    EndpointGoLive,
    EndpointLatencies,
    EndpointLogs,
    EndpointTrafficSeries,
    ProxyFiles,
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[Endpoint],
):
    """Inference endpoints."""

    queryset = Endpoint.objects.none()
    serializer_class = EndpointSerializer
    lookup_field = "name"
    lookup_value_regex = "[a-z0-9-]+"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = EndpointFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "logs"), Capability.FLEET_VIEW),
        **dict.fromkeys(("traffic", "traffic_series", "engine_series", "latency"), Capability.FLEET_VIEW),
        **dict.fromkeys(("create", "partial_update", "destroy", "scale", "restart", "rollback"), _MANAGE),
        **dict.fromkeys(("pause", "resume", "cancel", "gate_again"), _MANAGE),
        **dict.fromkeys(("golive", "golive_estimate"), Capability.GOLIVE_RUN),
        **dict.fromkeys(("nginx_conf", "haproxy_cfg"), _MANAGE),
    }

    def get_queryset(self) -> QuerySet[Endpoint]:
        """Return every endpoint that is not deleted."""
        return endpoint_list()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Return addresses and the rollout with one endpoint only."""
        return EndpointDetailSerializer if self.detail else EndpointSerializer

    def _shown(self, endpoint: Endpoint, code: int) -> Response:
        fresh = endpoint_list().get(pk=endpoint.pk)
        return Response(EndpointDetailSerializer(fresh).data, status=code)

    @extend_schema(
        summary="Deploy a new endpoint", request=EndpointCreateSerializer, responses={202: EndpointDetailSerializer}
    )
    def create(self, request: Request) -> Response:
        """Make it and roll out its first revision."""
        body = body_of(request, EndpointCreateSerializer)
        name, spec, note = body.pop("name"), spec_of(body.pop("spec")), body.pop("note")
        endpoint, _rollout = endpoint_create(
            name=name,
            spec=spec,
            note=note,
            gpus=body.pop("gpus"),
            gate=body.pop("gate"),
            desired_replicas=body.pop("desired_replicas"),
            settings=body,
            actor=Actor.from_request(request),
        )
        return self._shown(endpoint, status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Change an endpoint's settings", request=SettingsSerializer, responses=EndpointDetailSerializer
    )
    def partial_update(self, request: Request, name: str) -> Response:
        """Change what needs no new revision."""
        body = body_of(request, SettingsSerializer, partial=True)
        endpoint = endpoint_update(endpoint_id=endpoint_named(name).pk, actor=Actor.from_request(request), **body)
        return self._shown(endpoint, status.HTTP_200_OK)

    @extend_schema(summary="Delete an endpoint", responses={202: EndpointSerializer})
    def destroy(self, request: Request, name: str) -> Response:
        """Its replicas finish what they work on; then its address answers no more."""
        endpoint = endpoint_delete(endpoint_id=endpoint_named(name).pk, actor=Actor.from_request(request))
        return self._shown(endpoint, status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Change the number of replicas", request=ScaleSerializer, responses={202: EndpointDetailSerializer}
    )
    @action(detail=True, methods=["post"])
    def scale(self, request: Request, name: str) -> Response:
        """Set how many replicas are wanted; 0 lets all of them go."""
        body = body_of(request, ScaleSerializer)
        endpoint = endpoint_scale(endpoint_id=endpoint_named(name).pk, actor=Actor.from_request(request), **body)
        return self._shown(endpoint, status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Restart every replica, a few at a time", request=None, responses={202: EndpointDetailSerializer}
    )
    @action(detail=True, methods=["post"])
    def restart(self, request: Request, name: str) -> Response:
        """Roll out a revision with the same spec."""
        endpoint = endpoint_named(name)
        endpoint_restart(endpoint_id=endpoint.pk, actor=Actor.from_request(request))
        return self._shown(endpoint, status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Return to an earlier revision", request=RollbackSerializer, responses={202: EndpointDetailSerializer}
    )
    @action(detail=True, methods=["post"])
    def rollback(self, request: Request, name: str) -> Response:
        """Roll out an earlier revision again."""
        endpoint, body = endpoint_named(name), body_of(request, RollbackSerializer)
        endpoint_rollback(endpoint_id=endpoint.pk, number=body.get("revision"), actor=Actor.from_request(request))
        return self._shown(endpoint, status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Pause the rollout", request=None, responses={202: EndpointDetailSerializer})
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, name: str) -> Response:
        """Leave old and new replicas as they are."""
        endpoint = endpoint_named(name)
        rollout_pause(endpoint_id=endpoint.pk, actor=Actor.from_request(request))
        return self._shown(endpoint, status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Go on with the rollout", request=None, responses={202: EndpointDetailSerializer})
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, name: str) -> Response:
        """Go on with a paused rollout."""
        endpoint = endpoint_named(name)
        rollout_resume(endpoint_id=endpoint.pk, actor=Actor.from_request(request))
        return self._shown(endpoint, status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Call the rollout off", request=None, responses={202: EndpointDetailSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, name: str) -> Response:
        """Return to the revision before."""
        endpoint = endpoint_named(name)
        rollout_cancel(endpoint_id=endpoint.pk, actor=Actor.from_request(request))
        return self._shown(endpoint, status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Show what went through the gateways",
        parameters=[
            OpenApiParameter("window", str, enum=list(WINDOWS), description="Of the last 15 min, 1 h or 24 h.")
        ],
        responses=TrafficSerializer,
        filters=False,
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def traffic(self, request: Request, name: str) -> Response:
        """Return requests by class of status, and queue, first byte and total time of all gateways together."""
        body = traffic_body(endpoint_named(name), request.query_params.get("window", "15m"))
        return Response(TrafficSerializer(body).data)
