"""Differences over the API: listed and settled."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.leasing.filters import DriftFilters
from fleet.api.leasing.serializers import DriftSerializer
from fleet.api.servers import ReasonSerializer
from fleet.models import Drift
from fleet.selectors.leasing import drift_list
from fleet.services.drift_actions import drift_accept, drift_adopt, drift_end, drift_ignore
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now


class AdoptSerializer(serializers.Serializer[Any]):
    """Whose machine it is."""

    server = serializers.IntegerField(min_value=1, max_value=2**63 - 1, required=False)


class IgnoreSerializer(ReasonSerializer):
    """Until when."""

    until = serializers.DateTimeField()


@extend_schema_view(
    list=extend_schema(summary="List differences"),
    retrieve=extend_schema(summary="Show a difference"),
)
class DriftViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Drift]):
    """Where panel and provider differ."""

    queryset = Drift.objects.none()
    serializer_class = DriftSerializer
    lookup_value_regex = r"\d+"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = DriftFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        **dict.fromkeys(("adopt", "end", "accept", "ignore"), Capability.LEASES_MANAGE),
    }

    def get_queryset(self) -> QuerySet[Drift]:
        """Return every difference."""
        return drift_list(now=now())

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)

    def _answer(self, pk: str) -> Response:
        return Response(self.get_serializer(self.get_queryset().get(pk=pk)).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Adopt a found machine", request=AdoptSerializer, responses={202: DriftSerializer})
    @action(detail=True, methods=["post"])
    def adopt(self, request: Request, pk: str) -> Response:
        """Make a lease of it."""
        body = body_of(request, AdoptSerializer)
        drift_adopt(drift_id=int(pk), actor=Actor.from_request(request), server_id=body.get("server"))
        return self._answer(pk)

    @extend_schema(summary="End a found machine", request=ReasonSerializer, responses={202: DriftSerializer})
    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str) -> Response:
        """Of an unknown machine, or one that is not what was ordered; asked for until the provider confirms it."""
        drift_end(drift_id=int(pk), actor=Actor.from_request(request))
        return self._answer(pk)

    @extend_schema(summary="Accept a difference", request=ReasonSerializer, responses={202: DriftSerializer})
    @action(detail=True, methods=["post"])
    def accept(self, request: Request, pk: str) -> Response:
        """Take the provider's word: the price, the machine as found, or that it is gone."""
        drift_accept(drift_id=int(pk), actor=Actor.from_request(request))
        return self._answer(pk)

    @extend_schema(summary="Ignore a difference for a time", request=IgnoreSerializer, responses={202: DriftSerializer})
    @action(detail=True, methods=["post"])
    def ignore(self, request: Request, pk: str) -> Response:
        """Leave it out of sight until then, at most a year."""
        body = body_of(request, IgnoreSerializer)
        drift_ignore(drift_id=int(pk), until=body["until"], actor=Actor.from_request(request), reason=body["reason"])
        return self._answer(pk)
