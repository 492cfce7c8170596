"""Offers over the API: one list across accounts, and what ordering one would cost."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.leasing.filters import OfferFilters
from fleet.api.leasing.serializers import (
    MoneySerializer,
    OfferSerializer,
    RateUsedSerializer,
    ReasonedSerializer,
    amount,
)
from fleet.enums import OperationKind
from fleet.models import Offer
from fleet.reasons import REASON_WORDS
from fleet.selectors.leasing import offer_list, usual_seconds
from fleet.services.planning import Plan, order_plan
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability


class PlanQuerySerializer(serializers.Serializer[Any]):
    """What an order is planned with."""

    max_price_per_hour = amount(min_value=0, required=False)


class StopEffectSerializer(serializers.Serializer[Any]):
    """What stopping the machine would change on the bill."""

    saves_compute = serializers.BooleanField(allow_null=True, help_text="null: it depends, or is not known.")
    keeps_billing = serializers.ListField(child=serializers.CharField())
    note = serializers.CharField()


class RefusalSerializer(ReasonedSerializer):
    """A typed reason against the order."""

    code = serializers.CharField()


class PlanSerializer(serializers.Serializer[Any]):
    """What an order would do and cost."""

    offer = OfferSerializer()
    price_per_hour = MoneySerializer(allow_null=True)
    price_per_month = MoneySerializer(allow_null=True, help_text="730 hours.")
    stop_effect = StopEffectSerializer()
    spent_this_month = MoneySerializer(many=True, help_text="Of the account, by currency.")
    budget = MoneySerializer(allow_null=True)
    budget_used = MoneySerializer(allow_null=True, help_text="In the budget's currency, as far as rates reach.")
    exchange_rates = RateUsedSerializer(many=True, help_text="What the budget and the highest price are compared by.")
    refusals = RefusalSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())
    installs_agent = serializers.BooleanField()
    usual_seconds = serializers.FloatField(allow_null=True, help_text="From order to ready, the median of the last 20.")


def plan_shown(plan: Plan) -> dict[str, Any]:
    """Return a plan as the API shows it."""
    kind = plan.offer.account.kind
    effect = plan.stop_effect
    return {
        "offer": plan.offer,
        "price_per_hour": plan.price_per_hour,
        "price_per_month": plan.price_per_month.rounded() if plan.price_per_month else None,
        "stop_effect": {
            "saves_compute": effect.saves_compute,
            "keeps_billing": list(effect.keeps_billing),
            "note": str(effect.note),
        },
        "spent_this_month": [money.rounded() for money in plan.spent.values()],
        "budget": plan.budget,
        "budget_used": plan.used.total.rounded() if plan.used is not None else None,
        "exchange_rates": plan.exchange_rates,
        "refusals": [
            {
                "code": str(reason),
                "sentence": str(REASON_WORDS[reason].sentence),
                "next_step": str(REASON_WORDS[reason].next_step),
            }
            for reason in plan.refusals
        ],
        "warnings": list(plan.warnings),
        "installs_agent": plan.runs_startup_script,
        "usual_seconds": usual_seconds(kind=OperationKind.ORDER, account_kind=kind),
    }


@extend_schema_view(
    list=extend_schema(summary="List offers"),
    retrieve=extend_schema(summary="Show an offer"),
)
class OfferViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Offer]):
    """What can be rented now, across accounts."""

    queryset = Offer.objects.none()
    serializer_class = OfferSerializer
    lookup_value_regex = r"\d+"
    ordering = ("id",)
    filter_backends = (DjangoFilterBackend,)
    filterset_class = OfferFilters
    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    def get_queryset(self) -> QuerySet[Offer]:
        """Return every offer."""
        return offer_list()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)

    @extend_schema(
        summary="Plan an order",
        parameters=[PlanQuerySerializer],
        responses={200: PlanSerializer},
    )
    @action(detail=True, methods=["get"])
    def plan(self, request: Request, pk: str) -> Response:
        """Say what ordering this offer would cost, what a stop would save, and what stands against it."""
        query = PlanQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        offer = self.get_object()
        plan = order_plan(
            account_id=offer.account_id,
            offer_id=int(pk),
            max_price_per_hour=query.validated_data.get("max_price_per_hour"),
        )
        return Response(PlanSerializer(plan_shown(plan)).data)
