"""Dated exchange rates over the API."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.leasing.serializers import ExchangeRateSerializer
from fleet.models import ExchangeRate
from fleet.selectors.leasing import exchange_rate_list
from fleet.services.rates import rate_enter, rate_remove
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability


class RateSerializer(serializers.Serializer[Any]):
    """One `base` is `rate` `quote` from this day on."""

    base = serializers.RegexField(r"^[A-Z]{3}$")
    quote = serializers.RegexField(r"^[A-Z]{3}$")
    rate = serializers.DecimalField(max_digits=18, decimal_places=8)
    effective_on = serializers.DateField()


@extend_schema_view(
    list=extend_schema(summary="List exchange rates"),
    retrieve=extend_schema(summary="Show an exchange rate"),
)
class ExchangeRateViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ExchangeRate]):
    """Rates that people entered; without one, currencies stay apart."""

    queryset = ExchangeRate.objects.none()
    serializer_class = ExchangeRateSerializer
    lookup_value_regex = r"\d+"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        **dict.fromkeys(("create", "destroy"), Capability.ACCOUNTS_MANAGE),
    }

    def get_queryset(self) -> QuerySet[ExchangeRate]:
        """Return every rate."""
        return exchange_rate_list()

    @extend_schema(summary="Enter an exchange rate", request=RateSerializer, responses={201: ExchangeRateSerializer})
    def create(self, request: Request) -> Response:
        """Enter a rate for a day; one that is there for that day is replaced."""
        rate = rate_enter(actor=Actor.from_request(request), **body_of(request, RateSerializer))
        return Response(ExchangeRateSerializer(rate).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Remove an exchange rate", responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Take a rate away; sums that used it are apart again."""
        rate_remove(rate_id=int(pk), actor=Actor.from_request(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
