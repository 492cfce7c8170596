"""Series and percentiles of an endpoint over the API: what its engines tell, what probes found."""

import math
from collections.abc import Sequence
from datetime import datetime
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
from endpoints.engine_figures import LATENCIES, METRICS, EngineLatency, engine_series
from endpoints.latency import LONGEST, EndpointLatency, ProbeLatency, endpoint_latency
from monitoring.api.encoding import SeriesAnswer
from monitoring.api.probe_shapes import PercentileSerializer
from monitoring.api.series import (
    DEFAULT_RANGE,
    MomentField,
    SeriesFrameRenderer,
    SeriesJsonRenderer,
    SeriesQuerySerializer,
)
from monitoring.engines.histograms import Bucketed
from monitoring.percentiles import Percentile
from monitoring.probing.tables import CONNECTIONS
from monitoring.probing.tables import METRICS as PROBE_METRICS
from panel.core.clock import now
from panel.core.errors import InvalidInput

MOST_POINTS: Final = 500
_RANGE: Final = [
    OpenApiParameter(
        "from", OpenApiTypes.STR, description="ISO 8601 or Unix seconds; an hour before `to` if left out."
    ),
    OpenApiParameter("to", OpenApiTypes.STR, description="ISO 8601 or Unix seconds; now if left out."),
]


class EnginePointsSerializer(serializers.Serializer[Any]):
    """One series; a point is [start of the bucket, average, maximum], a gap [start, null, null]."""

    endpoint = serializers.IntegerField(required=False, help_text="All replicas together: sums, of shares the fullest.")
    replica = serializers.IntegerField(required=False, help_text="One replica.")
    metric = serializers.CharField()
    points = serializers.ListField(child=serializers.ListField())


class EngineSeriesSerializer(serializers.Serializer[Any]):
    """Series of one grid. level: what they were made from (raw, 1m, 5m, 1h)."""

    step_seconds = serializers.IntegerField()
    level = serializers.CharField(help_text="raw, 1m, 5m or 1h.")
    to = serializers.DateTimeField()
    series = EnginePointsSerializer(many=True)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`, a word that Python keeps for itself."""
        return {"from": serializers.DateTimeField(), **super().get_fields()}


class EstimateSerializer(serializers.Serializer[Any]):
    """A percentile read from an engine's buckets: it lies between two of their edges."""

    q = serializers.FloatField()
    n = serializers.IntegerField()
    value_ms = serializers.FloatField(
        allow_null=True, help_text="Evenly placed between the edges; null: over all of them."
    )
    low_ms = serializers.FloatField(allow_null=True)
    high_ms = serializers.FloatField(
        allow_null=True, help_text="null with a low edge: more than that is all that is known."
    )
    is_over_range = serializers.BooleanField()
    is_enough = serializers.BooleanField(help_text="Whether n is large enough to show it.")


class EngineStepSerializer(serializers.Serializer[Any]):
    """One step of all replicas together."""

    at = serializers.DateTimeField()
    percentiles = EstimateSerializer(many=True)


class EngineReplicaSerializer(serializers.Serializer[Any]):
    """One replica over the range."""

    replica = serializers.IntegerField()
    percentiles = EstimateSerializer(many=True)


class EngineLatencySerializer(serializers.Serializer[Any]):
    """One time that engines measure themselves, from their merged histograms."""

    name = serializers.ChoiceField(choices=LATENCIES)
    n = serializers.IntegerField()
    unplaced = serializers.IntegerField(help_text="Requests whose buckets did not add up; in no percentile.")
    mean_ms = serializers.FloatField(allow_null=True)
    percentiles = EstimateSerializer(many=True)
    replicas = EngineReplicaSerializer(many=True)
    steps = EngineStepSerializer(many=True)


class SourceSerializer(serializers.Serializer[Any]):
    """What a replica's page of metrics has."""

    replica = serializers.IntegerField()
    server = serializers.CharField()
    family = serializers.CharField(help_text="Whose names the page has; empty: not known.")
    missing = serializers.ListField(child=serializers.CharField(), help_text="Not exposed by this engine version.")
    broken = serializers.ListField(child=serializers.CharField(), help_text="Histograms whose buckets do not add up.")
    problem = serializers.CharField(help_text="no_page, off, refused, unanswered, too_large, unknown; empty: none.")


class ProbeStepSerializer(serializers.Serializer[Any]):
    """One step of one place."""

    at = serializers.DateTimeField()
    percentiles = PercentileSerializer(many=True)


class ProbePlaceSerializer(serializers.Serializer[Any]):
    """What one probe found from one place, cold or warm."""

    probe = serializers.IntegerField()
    name = serializers.CharField()
    metric = serializers.ChoiceField(choices=PROBE_METRICS)
    threshold_ms = serializers.FloatField(allow_null=True)
    step_seconds = serializers.IntegerField()
    server = serializers.IntegerField(allow_null=True, help_text="null: the panel.")
    place = serializers.CharField()
    connection = serializers.ChoiceField(choices=CONNECTIONS)
    failures = serializers.IntegerField()
    share_over = serializers.FloatField(allow_null=True, help_text="Over the threshold, failures included.")
    percentiles = PercentileSerializer(many=True)
    steps = ProbeStepSerializer(many=True)


class EndpointLatencySerializer(serializers.Serializer[Any]):
    """Probes and engines beside one another. What gateways measured stands under `traffic/`."""

    step_seconds = serializers.IntegerField(help_text="Of the engines' steps.")
    to = serializers.DateTimeField()
    probes = ProbePlaceSerializer(many=True)
    engines = EngineLatencySerializer(many=True)
    sources = SourceSerializer(many=True)
    missing = serializers.ListField(child=serializers.CharField(), help_text="Readings that no engine here exposes.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`."""
        return {"from": serializers.DateTimeField(), **super().get_fields()}


class RangeQuerySerializer(serializers.Serializer[Any]):
    """Which time, in how many steps."""

    to = MomentField(required=False)
    points = serializers.IntegerField(min_value=1, max_value=MOST_POINTS, default=60)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`."""
        return {"from": MomentField(required=False, source="start"), **super().get_fields()}


class EndpointLatencies(GenericViewSet[Any]):
    """Series of engines, and percentiles of probes and engines."""

    @extend_schema(
        summary="Show what an endpoint's engines tell over time",
        parameters=[
            OpenApiParameter(
                "metrics", OpenApiTypes.STR, required=True, description=f"Comma-separated: {', '.join(METRICS)}."
            ),
            *_RANGE,
            OpenApiParameter("points", OpenApiTypes.INT, description="At most so many buckets."),
        ],
        responses=EngineSeriesSerializer,
        filters=False,
    )
    @action(
        detail=True, methods=["get"], url_path="series", pagination_class=None,
        renderer_classes=[SeriesJsonRenderer, SeriesFrameRenderer],
    )  # fmt: skip
    def engine_series(self, request: Request, name: str) -> Response:
        """Return each metric of all replicas together, then of each one."""
        query = SeriesQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        asked, endpoint = query.validated_data, endpoint_named(name)
        end = asked.get("to") or now()
        start = asked.get("start") or end - DEFAULT_RANGE
        names = [each.strip() for each in asked["metrics"].split(",") if each.strip()]
        found = engine_series(endpoint=endpoint, metrics=names, start=start, end=end, points=asked["points"])
        return Response(SeriesAnswer(found, start, end))

    @extend_schema(
        summary="Show how long an endpoint takes",
        parameters=[
            *_RANGE,
            OpenApiParameter("points", OpenApiTypes.INT, description="Steps at most; 60 when left out."),
        ],
        responses=EndpointLatencySerializer,
        filters=False,
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def latency(self, request: Request, name: str) -> Response:
        """Return percentiles of its probes by place, cold and warm apart, and of its engines' own histograms."""
        query = RangeQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        endpoint, end = endpoint_named(name), query.validated_data.get("to") or now()
        start = query.validated_data.get("start") or end - DEFAULT_RANGE
        if not start < end <= start + LONGEST:
            raise InvalidInput(_("A range goes forward, and is of 90 days at most."), field="from")
        found = endpoint_latency(endpoint=endpoint, start=start, end=end, points=query.validated_data["points"])
        return Response({"from": start, "to": end, **latency_body(found)})


def latency_body(found: EndpointLatency) -> dict[str, Any]:
    """Return all of it as the API answers it."""
    return {
        "step_seconds": found.engine_step_seconds,
        "probes": [row for one in found.probes for row in _probe_rows(one, found)],
        "engines": [_engine(one) for one in found.engines],
        "sources": [
            {name: getattr(one, name) for name in ("replica", "server", "family", "missing", "broken", "problem")}
            for one in found.sources
        ],
        "missing": list(found.missing),
    }


def _probe_rows(one: ProbeLatency, found: EndpointLatency) -> list[dict[str, Any]]:
    return [
        {
            "probe": one.probe.pk,
            "name": one.probe.name,
            "metric": one.probe.metric,
            "threshold_ms": one.probe.threshold_ms,
            "step_seconds": one.step_seconds,
            "server": place.server_id or None,
            "place": found.servers.get(place.server_id, f"server {place.server_id}") if place.server_id else "panel",
            "connection": place.connection,
            "failures": place.failures,
            "share_over": place.over,
            "percentiles": _percentiles(place.percentiles),
            "steps": [
                {"at": at, "percentiles": _percentiles(values)}
                for at, values in one.steps.get((place.server_id, place.connection), ())
            ],
        }
        for place in one.places
    ]


def _percentiles(found: Sequence[Percentile]) -> list[dict[str, Any]]:
    return [
        {
            "q": one.q,
            "n": one.n,
            "value_ms": _finite(one.value_ms),
            "is_over": one.value_ms is not None and math.isinf(one.value_ms),
            "is_enough": one.is_enough,
            "low_ms": _finite(one.low_ms),
            "high_ms": _finite(one.high_ms),
        }
        for one in found
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _engine(one: EngineLatency) -> dict[str, Any]:
    return {
        "name": one.name,
        "n": one.whole.n,
        "unplaced": one.whole.unplaced,
        "mean_ms": one.whole.mean_ms,
        "percentiles": _estimates(one.whole),
        "replicas": [{"replica": pk, "percentiles": _estimates(part)} for pk, part in sorted(one.by_replica.items())],
        "steps": [_step(at, part) for at, part in one.steps],
    }


def _step(at: datetime, part: Bucketed) -> dict[str, Any]:
    return {"at": at, "percentiles": _estimates(part)}


def _estimates(part: Bucketed) -> list[dict[str, Any]]:
    names = ("q", "n", "value_ms", "low_ms", "high_ms", "is_over_range", "is_enough")
    return [{name: getattr(one, name) for name in names} for one in part.estimates()]
