"""Operations over the API: watched, never changed."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, viewsets

from fleet.api.leasing.filters import OperationFilters
from fleet.api.leasing.serializers import OperationSerializer
from fleet.models import Operation
from fleet.selectors.leasing import operation_list
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability


@extend_schema_view(
    list=extend_schema(summary="List operations"),
    retrieve=extend_schema(summary="Show an operation"),
)
class OperationViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Operation]):
    """Long calls to providers, with their steps."""

    queryset = Operation.objects.none()
    serializer_class = OperationSerializer
    lookup_value_regex = r"\d+"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = OperationFilters
    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    def get_queryset(self) -> QuerySet[Operation]:
        """Return every operation."""
        return operation_list()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)
