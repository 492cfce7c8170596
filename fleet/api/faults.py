"""Faults over the API: read only."""

from typing import ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, viewsets

from fleet.api.filters import FaultFilters
from fleet.api.serializers import FaultSerializer
from fleet.models import GpuFault
from fleet.selectors import fault_list
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability


@extend_schema_view(list=extend_schema(summary="List faults"), retrieve=extend_schema(summary="Show a fault"))
class FaultViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[GpuFault]):
    """XIDs and other faults of cards, newest first; a burst of one code on one card is one fault."""

    queryset = GpuFault.objects.none()
    serializer_class = FaultSerializer
    lookup_value_regex = r"\d+"
    ordering = ("-last_at", "-id")
    filter_backends = (DjangoFilterBackend,)
    filterset_class = FaultFilters
    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    def get_queryset(self) -> QuerySet[GpuFault]:
        """Return every fault."""
        return fault_list()
