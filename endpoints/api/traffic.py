"""What went through gateways for an endpoint, over the API."""

from typing import Any, Final

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from endpoints.api.fields import endpoint_named
from endpoints.models import Endpoint
from endpoints.traffic import QUANTILES, WINDOWS, Latency, Traffic, traffic_of
from endpoints.traffic_series import METRICS, MOST_BUCKETS, traffic_series
from monitoring.api.encoding import SeriesAnswer
from monitoring.api.series import DEFAULT_RANGE, SeriesFrameRenderer, SeriesJsonRenderer, SeriesQuerySerializer
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


class TrafficPointsSerializer(serializers.Serializer[Any]):
    """One series; a point is [start of the bucket, average, maximum], a gap [start, null, null]."""

    endpoint = serializers.IntegerField()
    metric = serializers.CharField()
    points = serializers.ListField(child=serializers.ListField())


class TrafficSeriesSerializer(serializers.Serializer[Any]):
    """Series of one grid."""

    step_seconds = serializers.IntegerField()
    to = serializers.DateTimeField()
    series = TrafficPointsSerializer(many=True)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`, a word that Python keeps for itself."""
        return {"from": serializers.DateTimeField(), **super().get_fields()}


_PARAMETERS: Final = [
    OpenApiParameter("metrics", OpenApiTypes.STR, required=True, description=f"Comma-separated: {', '.join(METRICS)}."),
    OpenApiParameter(
        "from", OpenApiTypes.STR, description="ISO 8601 or Unix seconds; an hour before `to` if left out."
    ),
    OpenApiParameter("to", OpenApiTypes.STR, description="ISO 8601 or Unix seconds; now if left out."),
    OpenApiParameter(
        "points", OpenApiTypes.INT, description=f"At most so many buckets, and never above {MOST_BUCKETS}."
    ),
]


class EndpointTrafficSeries(GenericViewSet[Any]):
    """Traffic over time."""

    @extend_schema(
        summary="Show what went through the gateways over time",
        parameters=_PARAMETERS,
        responses=TrafficSeriesSerializer,
        filters=False,
    )
    @action(
        detail=True, methods=["get"], url_path="traffic/series", pagination_class=None,
        renderer_classes=[SeriesJsonRenderer, SeriesFrameRenderer],
    )  # fmt: skip
    def traffic_series(self, request: Request, name: str) -> Response:
        """Return rates by class, percentiles of each bucket, tokens and what was under way; kept for seven days."""
        query = SeriesQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        asked, endpoint = query.validated_data, endpoint_named(name)
        names = list(dict.fromkeys(each.strip() for each in asked["metrics"].split(",") if each.strip()))
        unknown = [each for each in names if each not in METRICS]
        if unknown or not names:
            words = {"unknown": ", ".join(unknown[:5]) or "—", "metrics": ", ".join(METRICS)}
            raise InvalidInput(_("No such metric: %(unknown)s. There are %(metrics)s.") % words, field="metrics")
        end = asked.get("to") or now()
        start = asked.get("start") or end - DEFAULT_RANGE
        if start >= end:
            raise InvalidInput(_("`from` lies before `to`."), field="from")
        found = traffic_series(endpoint_id=endpoint.pk, metrics=names, start=start, end=end, points=asked["points"])
        return Response(SeriesAnswer(found, start, end))
