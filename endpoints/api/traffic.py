"""What went through gateways for an endpoint, over the API."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from endpoints.models import Endpoint
from endpoints.traffic import QUANTILES, WINDOWS, Latency, Traffic, traffic_of
from panel.core.clock import now
from panel.core.errors import InvalidInput


class QuantileSerializer(serializers.Serializer[Any]):
    """One quantile. ms is null when n is below `needs`: so few samples say nothing about it."""

    share = serializers.FloatField(help_text="0.5, 0.95 or 0.99")
    ms = serializers.FloatField(allow_null=True)
    needs = serializers.IntegerField(help_text="Samples that it needs.")


class LatencySerializer(serializers.Serializer[Any]):
    """Times of one part of requests, from the merged histograms of all gateways."""

    n = serializers.IntegerField(help_text="Samples.")
    mean_ms = serializers.FloatField(allow_null=True)
    quantiles = QuantileSerializer(many=True)


class TrafficSerializer(serializers.Serializer[Any]):
    """What went through all gateways in a time; numbers are null when no gateway told of it, which is not zero."""

    window = serializers.ChoiceField(choices=list(WINDOWS))
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    requests = serializers.IntegerField(allow_null=True)
    requests_per_second = serializers.FloatField(allow_null=True)
    retries = serializers.IntegerField(allow_null=True)
    limited = serializers.IntegerField(allow_null=True, help_text="Answered 429.")
    bytes_in = serializers.IntegerField(allow_null=True)
    bytes_out = serializers.IntegerField(allow_null=True)
    statuses = serializers.DictField(child=serializers.IntegerField(), help_text="By class.")
    queue = LatencySerializer()
    first_byte = LatencySerializer()
    total = LatencySerializer()


def traffic_body(endpoint: Endpoint, window: str) -> dict[str, Any]:
    """Return an endpoint's traffic as the API answers it. Raises InvalidInput for a window that there is not."""
    if window not in WINDOWS:
        raise InvalidInput(_("The window is one of: %(windows)s.") % {"windows": ", ".join(WINDOWS)}, field="window")
    at = now()
    found = traffic_of(endpoints={endpoint.pk: endpoint.created_at}, window=WINDOWS[window], at=at)[endpoint.pk]
    return {"window": window, **_numbers(found), **{part: _latency(found.latency[part]) for part in found.latency}}


def _numbers(found: Traffic) -> dict[str, Any]:
    names = (
        "start",
        "end",
        "requests",
        "requests_per_second",
        "retries",
        "limited",
        "bytes_in",
        "bytes_out",
        "statuses",
    )
    return {name: getattr(found, name) for name in names}


def _latency(found: Latency) -> dict[str, Any]:
    rows = [{"share": each, "ms": found.quantiles[each], "needs": Latency.needs(each)} for each in QUANTILES]
    return {"n": found.n, "mean_ms": found.mean_ms, "quantiles": rows}
