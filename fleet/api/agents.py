"""Agents over the API: listed, told how often to report, revoked."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.filters import AgentFilters
from fleet.api.serializers import AgentSerializer
from fleet.models import Agent
from fleet.selectors import agent_list
from fleet.services.agents import MAX_INTERVAL_SECONDS, MIN_INTERVAL_SECONDS, agent_configure, agent_revoke
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability


class IntervalsSerializer(serializers.Serializer[Any]):
    """How often an agent reads its cards, and reports."""

    sample_interval_seconds = serializers.FloatField(
        min_value=MIN_INTERVAL_SECONDS, max_value=MAX_INTERVAL_SECONDS, required=False
    )
    report_interval_seconds = serializers.FloatField(
        min_value=MIN_INTERVAL_SECONDS, max_value=MAX_INTERVAL_SECONDS, required=False
    )


class RevokeSerializer(serializers.Serializer[Any]):
    """Why, for the record."""

    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


@extend_schema_view(list=extend_schema(summary="List agents"), retrieve=extend_schema(summary="Show an agent"))
class AgentViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Agent]):
    """The workers on the servers."""

    queryset = Agent.objects.none()
    serializer_class = AgentSerializer
    lookup_value_regex = r"\d+"
    ordering = ("id",)
    filter_backends = (DjangoFilterBackend,)
    filterset_class = AgentFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        "partial_update": Capability.SERVERS_MANAGE,
        "revoke": Capability.AGENTS_MANAGE,
    }

    def get_queryset(self) -> QuerySet[Agent]:
        """Return every agent."""
        return agent_list()

    @extend_schema(
        summary="Change how often an agent samples and reports",
        request=IntervalsSerializer,
        responses={200: AgentSerializer},
    )
    def partial_update(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (the object is looked up by it)
        """The agent hears of it with the answer to its next report."""
        body = body_of(request, IntervalsSerializer)
        agent = agent_configure(agent_id=self.get_object().pk, actor=Actor.from_request(request), **body)
        return Response(self.get_serializer(agent).data)

    @extend_schema(
        summary="End an agent's token",
        description="Its reports are refused from now on; the server falls silent until it is joined again.",
        request=RevokeSerializer,
        responses={202: AgentSerializer},
    )
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (the object is looked up by it)
        """For a token that may be in wrong hands."""
        body = body_of(request, RevokeSerializer)
        agent = agent_revoke(agent=self.get_object(), actor=Actor.from_request(request), **body)
        return Response(self.get_serializer(agent).data, status=status.HTTP_202_ACCEPTED)
