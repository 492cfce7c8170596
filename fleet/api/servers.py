"""Servers over the API: listed, renamed, put into maintenance, joined again, retired."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.agent_package.installer import join_command, panel_url
from fleet.api.filters import ServerFilters
from fleet.api.serializers import JoinTokenSerializer, NewJoinTokenSerializer, ServerSerializer
from fleet.enums import ServerState
from fleet.models import Server
from fleet.selectors import server_list
from fleet.services.gpus import gpus_forget
from fleet.services.joining import join_token_create
from fleet.services.servers import server_end, server_maintenance_set, server_remove, server_update
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability


class ServerUpdateSerializer(serializers.Serializer[Any]):
    """What people call a server."""

    name = serializers.CharField(max_length=100, required=False)
    provider = serializers.CharField(max_length=64, allow_blank=True, required=False)
    region = serializers.CharField(max_length=64, allow_blank=True, required=False)
    labels = serializers.DictField(
        child=serializers.CharField(max_length=200, allow_blank=True), required=False, help_text="Replaces all labels."
    )


class ReasonSerializer(serializers.Serializer[Any]):
    """Why, for the record."""

    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class MaintenanceSerializer(ReasonSerializer):
    """Into maintenance, or out of it."""

    is_on = serializers.BooleanField()


class ForgetSerializer(ReasonSerializer):
    """Which cards to forget."""

    gpus = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        required=False,
        max_length=500,
        help_text="Ids of cards that are missing, lost or unknown; left out: all that are missing.",
    )


class RejoinSerializer(serializers.Serializer[Any]):
    """How the machine fetches its packages."""

    mirror = serializers.CharField(
        max_length=500,
        allow_blank=True,
        default="",
        help_text="A package mirror by its configured name, or its address.",
    )


@extend_schema_view(
    list=extend_schema(summary="List servers"),
    retrieve=extend_schema(summary="Show a server"),
    destroy=extend_schema(
        summary="Remove a retired server for good", description="With its cards and faults. Retire it first."
    ),
)
class ServerViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[Server]
):
    """Machines that report."""

    queryset = Server.objects.none()
    serializer_class = ServerSerializer
    lookup_value_regex = r"\d+"
    ordering = ("id",)
    filter_backends = (DjangoFilterBackend,)
    filterset_class = ServerFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        **dict.fromkeys(
            ("partial_update", "destroy", "retire", "maintenance", "forget_gpus"), Capability.SERVERS_MANAGE
        ),
        "rejoin": Capability.JOIN_TOKENS_MANAGE,
    }

    def get_queryset(self) -> QuerySet[Server]:
        """Return every server; a list leaves retired ones out unless the query asks for them."""
        return server_list(state=ServerState.values) if self.detail else server_list()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone: an id names one server, whatever its state."""
        return queryset if self.detail else super().filter_queryset(queryset)

    def _answer(self, pk: str, code: int = status.HTTP_202_ACCEPTED) -> Response:
        """Return the server as it is after a change."""
        return Response(self.get_serializer(self.get_queryset().get(pk=pk)).data, status=code)

    @extend_schema(
        summary="Rename or label a server", request=ServerUpdateSerializer, responses={200: ServerSerializer}
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change what stands in the body."""
        body = body_of(request, ServerUpdateSerializer)
        server_update(server_id=int(pk), actor=Actor.from_request(request), **body)
        return self._answer(pk, status.HTTP_200_OK)

    def perform_destroy(self, instance: Server) -> None:
        """Delete a retired server."""
        server_remove(server_id=instance.pk, actor=Actor.from_request(self.request))

    @extend_schema(summary="Retire a server", request=ReasonSerializer, responses={202: ServerSerializer})
    @action(detail=True, methods=["post"])
    def retire(self, request: Request, pk: str) -> Response:
        """End its agent's token; its history stays."""
        body = body_of(request, ReasonSerializer)
        note = body["reason"]
        server_end(server_id=int(pk), reason="retired", actor=Actor.from_request(request), note=note)
        return self._answer(pk)

    @extend_schema(
        summary="Put a server into maintenance, or take it out",
        request=MaintenanceSerializer,
        responses={202: ServerSerializer},
    )
    @action(detail=True, methods=["post"])
    def maintenance(self, request: Request, pk: str) -> Response:
        """In maintenance a server is left alone; out of it, its reports decide what it is."""
        body = body_of(request, MaintenanceSerializer)
        server_maintenance_set(server_id=int(pk), actor=Actor.from_request(request), **body)
        return self._answer(pk)

    @extend_schema(
        summary="Forget cards that are gone for good", request=ForgetSerializer, responses={202: ServerSerializer}
    )
    @action(detail=True, methods=["post"], url_path="forget-gpus")
    def forget_gpus(self, request: Request, pk: str) -> Response:
        """Take them off the list; one that the server shows again comes back by itself."""
        body = body_of(request, ForgetSerializer)
        gpus_forget(
            server_id=int(pk),
            actor=Actor.from_request(request),
            gpu_ids=body.get("gpus"),
            reason=body["reason"],
        )
        return self._answer(pk)

    @extend_schema(
        summary="Make a join token for this very server",
        description="For a machine that was set up anew. The agent's present token ends when the new one is used.",
        request=RejoinSerializer,
        responses={201: NewJoinTokenSerializer},
    )
    @action(detail=True, methods=["post"])
    def rejoin(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (the object is looked up by it)
        """Return the token and its command, which stand in this answer and nowhere else."""
        server = self.get_object()
        body = body_of(request, RejoinSerializer)
        url = panel_url(request._request)  # noqa: SLF001 (DRF's own way to Django's request)
        made = join_token_create(name=server.name, server=server, actor=Actor.from_request(request))
        command = join_command(url=url, token=made.token, mirror=body["mirror"])
        answer = {**JoinTokenSerializer(made.row).data, "token": made.token, "command": command}
        return Response(answer, status=status.HTTP_201_CREATED)
