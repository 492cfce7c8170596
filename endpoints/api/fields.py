"""Fields and look-ups that the endpoints' serializers and views share."""

from typing import Any, Final

from django.utils.translation import gettext as _
from rest_framework import serializers

from endpoints.engines.base import EngineSpec
from endpoints.models import Endpoint
from panel.core.errors import InvalidInput, NotFound

GATE_HELP: Final = (
    "A go-live test that its new replicas have to pass before any request goes to them: `peak_per_second`, p95_ms, p99_ms, …; "
    "null: no gate."
)


def endpoint_named(name: str) -> Endpoint:
    """Return the endpoint of this name. Raises NotFound."""
    endpoint = Endpoint.objects.filter(name=name, deleted_at=None).first()
    if endpoint is None:
        raise NotFound(_("There is no such endpoint."))
    return endpoint


class MaxPriceSerializer(serializers.Serializer[Any]):
    """At most this for one card and hour (for a machine, when no card is asked for)."""

    amount = serializers.DecimalField(max_digits=18, decimal_places=6, min_value=0)
    currency = serializers.RegexField("^[A-Z]{3}$")


class PlacementSerializer(serializers.Serializer[Any]):
    """Where replicas may go; what is left out asks for nothing."""

    servers = serializers.ListField(child=serializers.IntegerField(min_value=1), max_length=500, required=False)
    labels = serializers.DictField(child=serializers.CharField(max_length=100), required=False)
    gpu_models = serializers.ListField(
        child=serializers.CharField(max_length=100), max_length=20, required=False, help_text="Parts of a card's name."
    )
    min_memory_bytes = serializers.IntegerField(min_value=1, max_value=2**53, required=False, allow_null=True)
    max_price = MaxPriceSerializer(required=False, allow_null=True)
    is_spread = serializers.BooleanField(required=False, help_text="Prefer servers without a replica of this endpoint.")

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return it as it is kept: amounts as text."""
        value: dict[str, Any] = super().to_internal_value(data)
        price = value.get("max_price")
        if price:
            missing = {"amount", "currency"} - set(price)  # which a partial body may leave out, and a price may not
            if missing:
                raise serializers.ValidationError({"max_price": [_("Give both: amount and currency.")]})
            value["max_price"] = {"amount": str(price["amount"]), "currency": price["currency"]}
        return value


def spec_of(data: Any) -> EngineSpec:
    """Return a spec from a request's body. Raises InvalidInput naming the argument."""
    if not isinstance(data, dict):
        raise InvalidInput(_("The spec is an object: {engine, model, …}."), field="spec")
    return EngineSpec.from_json(data)
