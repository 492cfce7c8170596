"""Series over the API: of a server (its GPUs and its host) and of one GPU."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from django.db.models import Q
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.models import Gpu, Server
from monitoring.api.encoding import HOST_PREFIX, SeriesAnswer, to_frame, to_json
from monitoring.metrics import GPU_METRICS, HOST_METRICS
from monitoring.selectors import series
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_POINTS: Final = 2_000
DEFAULT_RANGE: Final = timedelta(hours=1)
_GPU_NAMES: Final = frozenset(metric.name for metric in GPU_METRICS)


class MomentField(serializers.Field[datetime, str, str, Any]):
    """ISO 8601 (without an offset: UTC), or Unix seconds."""

    def to_internal_value(self, data: str) -> datetime:
        """Return the time, aware. Raises ValidationError."""
        try:
            return datetime.fromtimestamp(float(data), tz=UTC)
        except (ValueError, OverflowError, OSError):
            pass
        try:
            moment = datetime.fromisoformat(data)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise serializers.ValidationError(_("Give a time as ISO 8601 or in Unix seconds.")) from None


class SeriesQuerySerializer(serializers.Serializer[Any]):
    """What a chart asks for."""

    metrics = serializers.CharField(max_length=2_000)
    to = MomentField(required=False)
    points = serializers.IntegerField(min_value=1, max_value=MAX_POINTS, default=300)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`, a word that Python keeps for itself."""
        return {"from": MomentField(required=False, source="start"), **super().get_fields()}


class SeriesJsonRenderer(JSONRenderer):
    """Series as JSON without a Python object for each point on the way; anything else as usual."""

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> Any:
        """Return the body."""
        if isinstance(data, SeriesAnswer):
            return to_json(data)
        return super().render(data, accepted_media_type, renderer_context)


class SeriesFrameRenderer(BaseRenderer):
    """Series as 4-byte floats; an error stays JSON and says so."""

    media_type = "application/vnd.fleetdeck.series"
    format = "frame"
    charset = None
    render_style = "binary"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> Any:
        """Return the body."""
        if isinstance(data, SeriesAnswer):
            return to_frame(data)
        del accepted_media_type  # an error is not in the form that was asked for
        renderer_context["response"]["Content-Type"] = JSONRenderer.media_type
        return JSONRenderer().render(data, JSONRenderer.media_type, renderer_context)


class PointsSerializer(serializers.Serializer[Any]):
    """One series; a point is [start of the bucket, average, maximum], a gap [start, null, null]."""

    gpu = serializers.IntegerField(allow_null=True)
    server = serializers.IntegerField(allow_null=True)
    metric = serializers.CharField()
    points = serializers.ListField(child=serializers.ListField())


class SeriesSerializer(serializers.Serializer[Any]):
    """Series of one grid. level: what they were made from (raw, 1m, 5m, 1h)."""

    step_seconds = serializers.IntegerField()
    level = serializers.ChoiceField(choices=["raw", "1m", "5m", "1h"])
    to = serializers.DateTimeField()
    series = PointsSerializer(many=True)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`."""
        return {"from": serializers.DateTimeField(), **super().get_fields()}


_METRICS_HELP: Final = (
    "Comma-separated names. Of a GPU: {gpu}. Of a server's host, with the prefix `host.`: {host}."
).format(gpu=", ".join(metric.name for metric in GPU_METRICS), host=", ".join(metric.name for metric in HOST_METRICS))
_PARAMETERS: Final = [
    OpenApiParameter("metrics", OpenApiTypes.STR, required=True, description=_METRICS_HELP),
    OpenApiParameter(
        "from", OpenApiTypes.STR, description="ISO 8601 or Unix seconds; an hour before `to` if left out."
    ),
    OpenApiParameter("to", OpenApiTypes.STR, description="ISO 8601 or Unix seconds; now if left out."),
    OpenApiParameter("points", OpenApiTypes.INT, description=f"At most so many buckets (1 to {MAX_POINTS})."),
]


class SeriesView(APIView):
    """What both views share: the query, the range, the two forms of the answer."""

    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW
    renderer_classes = (SeriesJsonRenderer, SeriesFrameRenderer)

    def answer(self, request: Request, ids: "dict[Literal['gpu', 'server'], Collection[int]]") -> Response:
        """Return the series of these subjects. Raises InvalidInput for a metric that none of them has."""
        query = SeriesQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        end = asked.get("to") or now()
        start = asked.get("start") or end - DEFAULT_RANGE
        results = [
            series(kind=kind, subject_ids=ids[kind], metrics=names, start=start, end=end, points=asked["points"])
            for kind, names in _by_kind(asked["metrics"], has_host="server" in ids).items()
        ]
        result = results[0]
        result.series.extend(one for other in results[1:] for one in other.series)
        return Response(SeriesAnswer(result, start, end))


def _by_kind(metrics: str, *, has_host: bool) -> "dict[Literal['gpu', 'server'], list[str]]":
    """Sort the names by what they are of. Raises InvalidInput when there is none, or one of a host where there is none."""
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    of_host = [name.removeprefix(HOST_PREFIX) for name in names if name.startswith(HOST_PREFIX)]
    of_gpu = [name for name in names if not name.startswith(HOST_PREFIX)]
    if not names or (of_host and not has_host):
        raise InvalidInput(_("Name at least one metric; those of a host belong to servers."), field="metrics")
    by_kind: dict[Literal["gpu", "server"], list[str]] = {}
    if of_gpu:
        by_kind["gpu"] = of_gpu
    if of_host:
        by_kind["server"] = of_host
    return by_kind


class ServerSeriesView(SeriesView):
    """Series of a server: one for each of its GPUs and metric, one for each metric of the host."""

    @extend_schema(summary="Show a server's series", parameters=_PARAMETERS, responses=SeriesSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Answer one server's series. Raises NotFound."""
        if not Server.objects.filter(pk=pk).exists():
            raise NotFound(_("There is no such server."))
        gpu_ids = Gpu.objects.filter(Q(removed_at=None), server=pk).values_list("pk", flat=True)
        return self.answer(request, {"gpu": list(gpu_ids), "server": [pk]})


class GpuSeriesView(SeriesView):
    """Series of one GPU."""

    @extend_schema(summary="Show a GPU's series", parameters=_PARAMETERS, responses=SeriesSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Answer one GPU's series. Raises NotFound."""
        if not Gpu.objects.filter(pk=pk).exists():
            raise NotFound(_("There is no such GPU."))
        return self.answer(request, {"gpu": [pk]})
