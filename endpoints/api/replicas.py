"""Replicas and their logs over the API."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django_filters import rest_framework as filters
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request

from endpoints.models import Replica
from endpoints.selectors import replica_list, replica_log_text
from fleet.api.filters import SelectorFilters, number
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability
from panel.core.errors import InvalidInput


class ReplicaSerializer(serializers.ModelSerializer[Replica]):
    """One serving copy."""

    endpoint_name = serializers.CharField(source="endpoint.name", read_only=True)
    server_name = serializers.CharField(source="server.name", read_only=True)
    revision = serializers.IntegerField(source="revision.number", read_only=True)
    gpus = serializers.SerializerMethodField()

    class Meta:
        model = Replica
        fields = [
            "id", "endpoint", "endpoint_name", "server", "server_name", "revision", "gpus", "wanted", "runtime", "port",
            "generation", "state", "state_changed_at", "health", "is_gated", "reason", "detail", "percent", "restarts",
            "exit_code",
            "handle", "running", "waiting", "kv_cache_percent", "answered_ms", "steps", "created_at", "ready_at",
            "observed_at", "drain_began_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_gpus(self, replica: Replica) -> list[str]:
        """Return the UUIDs of the cards that it holds."""
        return [hold.gpu.uuid for hold in replica.gpu_holds.all()]


class ReplicaFilters(SelectorFilters):
    """Filters of replicas."""

    endpoint = number("Of this endpoint, by its id.")
    server = number("On this server.")
    is_open = filters.BooleanFilter(help_text="Those that have not ended, or those that have.")
    select: ClassVar[Any] = staticmethod(replica_list)


@extend_schema_view(list=extend_schema(summary="List replicas"), retrieve=extend_schema(summary="Show a replica"))
class ReplicaViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Replica]):
    """Serving copies of endpoints."""

    queryset = Replica.objects.none()
    serializer_class = ReplicaSerializer
    lookup_value_regex = r"\d{1,18}"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = ReplicaFilters
    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    def get_queryset(self) -> QuerySet[Replica]:
        """Return every replica."""
        return replica_list()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)

    @extend_schema(
        summary="Read a replica's log",
        parameters=[OpenApiParameter("generation", int, description="Of an earlier start; left out: the newest.")],
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    @action(detail=True, methods=["get"])
    def log(self, request: Request, pk: str) -> HttpResponse:  # noqa: ARG002 (in kwargs)
        """Return the kept lines as plain text; where some were too many to keep, a line says how many bytes."""
        given = request.query_params.get("generation", "")
        if given and not (given.isdecimal() and len(given) < 10):
            raise InvalidInput(_("`generation` is a number."), field="generation")
        replica = self.get_object()
        text = replica_log_text(replica=replica.pk, generation=int(given) if given else None)
        response = HttpResponse(text, content_type="text/plain; charset=utf-8")
        response["X-Content-Type-Options"] = "nosniff"
        return response
