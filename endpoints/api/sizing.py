"""Sizing over the API: does a model fit on what is registered and on what is offered, and for how much."""

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from endpoints.engines.registry import ENGINES
from endpoints.fitting import FitRow, sizing_of
from endpoints.sizing.fit import UTILIZATION, Demand
from endpoints.sizing.shape import ModelShape, shape_from_config
from endpoints.sizing.suggest import suggested_arguments
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import InvalidInput

_MOST = 2**53
_DIMENSIONS = ("parameters", "layers", "attention_heads", "kv_heads", "head_size")


class DemandSerializer(serializers.Serializer[Any]):
    """A model, by its config.json or by its dimensions, and what is wanted of it."""

    config = serializers.DictField(required=False, help_text="The model's config.json, whole.")
    parameters = serializers.IntegerField(min_value=1, max_value=_MOST, required=False)
    layers = serializers.IntegerField(min_value=1, max_value=10_000, required=False)
    attention_heads = serializers.IntegerField(min_value=1, max_value=10_000, required=False)
    kv_heads = serializers.IntegerField(min_value=1, max_value=10_000, required=False)
    head_size = serializers.IntegerField(min_value=1, max_value=10_000, required=False)
    context = serializers.IntegerField(  # type: ignore[assignment]  # a field of the name that the framework has too
        min_value=1, max_value=2**24, help_text="Tokens of prompt and answer."
    )
    concurrency = serializers.IntegerField(min_value=1, max_value=4096, help_text="Requests at once, at full context.")
    precision = serializers.CharField(max_length=32, default="bfloat16")
    kv_precision = serializers.CharField(max_length=32, default="auto")
    utilization = serializers.FloatField(min_value=0.05, max_value=0.99, default=UTILIZATION)
    engine = serializers.ChoiceField(list(ENGINES), required=False, help_text="Whose arguments are suggested.")


class FitSerializer(serializers.Serializer[Any]):
    """How it fits on one kind of card of a server, or on an offer."""

    id = serializers.IntegerField(source="href_id", help_text="Of the server or offer.")
    name = serializers.CharField(help_text="Of the server or account.")
    gpu = serializers.CharField()
    cards = serializers.IntegerField()
    free = serializers.IntegerField(allow_null=True, help_text="Cards that no replica holds.")
    memory_bytes = serializers.IntegerField(allow_null=True, help_text="Of one card.")
    fits = serializers.ChoiceField(["fits", "tight", "does_not", "unknown"], source="fit.verdict")
    tensor_parallel_size = serializers.IntegerField(source="fit.degree", help_text="Cards of a replica.")
    need_bytes = serializers.SerializerMethodField(help_text="On each card: weights, KV cache, overhead.")
    concurrency = serializers.IntegerField(source="fit.concurrency", help_text="Requests at full context that fit.")
    max_context = serializers.IntegerField(source="fit.max_context", help_text="Tokens of one request at most.")
    price_per_hour = serializers.SerializerMethodField(help_text="Of a replica, by currency; null: not known.")

    def get_need_bytes(self, row: FitRow) -> int | None:
        """Return what is needed on each card."""
        return row.fit.need.total_bytes if row.fit.need is not None else None

    def get_price_per_hour(self, row: FitRow) -> dict[str, str] | None:
        """Return amounts as decimal text."""
        return {code: f"{money.amount:f}" for code, money in row.rate.items()} if row.rate else None


class SizingSerializer(serializers.Serializer[Any]):
    """Verdicts, and arguments to begin with on the best of them."""

    servers = FitSerializer(many=True)
    offers = FitSerializer(many=True, help_text="The cheapest replica first.")
    offers_left_out = serializers.IntegerField()
    suggested_arguments = serializers.DictField(allow_null=True)


def _shape(body: dict[str, Any]) -> ModelShape:
    """Return the model's shape. Raises InvalidInput naming what is missing."""
    if "config" in body:
        return shape_from_config(body["config"], parameters=body.get("parameters"))
    missing = [name for name in _DIMENSIONS if name not in body]
    if missing:
        raise InvalidInput(_("Give the model's config.json, or all of its dimensions."), field=missing[0])
    return ModelShape(**{name: body[name] for name in _DIMENSIONS})


class SizingViewSet(viewsets.GenericViewSet[Any]):
    """Which GPU does a model need?"""

    serializer_class = SizingSerializer
    pagination_class = None
    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    @extend_schema(summary="Ask where a model fits", request=DemandSerializer, responses={200: SizingSerializer})
    def create(self, request: Request) -> Response:
        """Compare weights, KV cache and overhead with every registered card and every offer. Nothing is changed."""
        body = body_of(request, DemandSerializer)
        wanted = ("context", "concurrency", "precision", "kv_precision", "utilization")
        demand = Demand(shape=_shape(body), **{name: body[name] for name in wanted})
        found = sizing_of(demand, now(), FitRow)
        best = found.best
        is_asked = "engine" in body and best is not None
        return Response(
            {
                "servers": FitSerializer(found.servers, many=True).data,
                "offers": FitSerializer(found.offers, many=True).data,
                "offers_left_out": found.left_out,
                "suggested_arguments": suggested_arguments(body["engine"], demand, best) if is_asked and best else None,
            }
        )
