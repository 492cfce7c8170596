"""Orders over the API: placed once for one idempotency key."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.agent_package.installer import panel_url
from fleet.api.leasing.idempotency import IDEMPOTENCY_KEY, idempotency_key
from fleet.api.leasing.serializers import OperationSerializer, amount
from fleet.services.ordering import order_place
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability

MAX_ID = 2**63 - 1


class OrderSerializer(serializers.Serializer[Any]):
    """What is ordered."""

    account = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    offer = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    name = serializers.CharField(max_length=100, allow_blank=True, default="", help_text="Of the new server.")
    server = serializers.IntegerField(
        min_value=1, max_value=MAX_ID, required=False, help_text="Build this server again instead of making a new one."
    )
    options = serializers.DictField(
        child=serializers.CharField(max_length=4096, allow_blank=True),
        default=dict,
        help_text="By the names of the provider's order fields.",
    )
    max_price_per_hour = amount(min_value=0, required=False, help_text="Refused above it; the bid for spot machines.")
    override_reason = serializers.CharField(
        max_length=500, allow_blank=True, default="", help_text="Orders although the account's budget is used up."
    )


class OrderViewSet(viewsets.ViewSet):
    """Orders of machines; each is an operation from then on."""

    capability: ClassVar[CapabilityTable] = Capability.LEASES_MANAGE

    @extend_schema(
        summary="Order a machine",
        parameters=[IDEMPOTENCY_KEY],
        request=OrderSerializer,
        responses={202: OperationSerializer},
    )
    def create(self, request: Request) -> Response:
        """Place the order: the operation tells how far it is. It costs money from the provider's yes on."""
        body = body_of(request, OrderSerializer)
        placed = order_place(
            account_id=body["account"],
            offer_id=body["offer"],
            server_name=body["name"],
            server_id=body.get("server"),
            options=body["options"],
            max_price_per_hour=body.get("max_price_per_hour"),
            override_reason=body["override_reason"],
            actor=Actor.from_request(request),
            key=idempotency_key(request),
            url=panel_url(request._request),  # noqa: SLF001 (DRF's own way to Django's request)
        )
        return Response(OperationSerializer(placed.operation).data, status=status.HTTP_202_ACCEPTED)
