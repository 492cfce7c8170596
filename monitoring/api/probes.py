"""Probes over the API: made, changed, run at once; what they found, with percentiles that say how many they are of."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

import msgspec
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.agent.probes.result import ProbeResult
from monitoring.api.probe_shapes import (
    ProbeCheckSerializer,
    ProbeLatencySerializer,
    ProbeResultSerializer,
    ProbeSerializer,
    ProbeSettingsSerializer,
)
from monitoring.percentiles import Percentile
from monitoring.probing import months
from monitoring.probing.models import Probe
from monitoring.probing.reading import MOST_RESULTS, latency, latency_series, results
from monitoring.probing.services import (
    probe_check,
    probe_create,
    probe_delete,
    probe_run,
    probe_run_everywhere,
    probe_update,
)
from monitoring.probing.tables import METRICS
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import InvalidInput

LONGEST: Final = timedelta(days=90)
LONGEST_IN_HOURS: Final = timedelta(days=731)
DAY: Final = timedelta(days=1)
_RANGE: Final = [
    OpenApiParameter("from", datetime, description="A day ago when left out."),
    OpenApiParameter("to", datetime, description="Now when left out."),
]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _percentile(found: Percentile) -> dict[str, Any]:
    return {
        "q": found.q,
        "n": found.n,
        "value_ms": _finite(found.value_ms),
        "is_over": found.value_ms is not None and math.isinf(found.value_ms),
        "is_enough": found.is_enough,
        "low_ms": _finite(found.low_ms),
        "high_ms": _finite(found.high_ms),
    }


def _shown(result: Mapping[str, Any]) -> dict[str, Any]:
    own = ("server", "connection", "started_at", "outcome", "reason", "is_suspect")
    facts = {key: value for key, value in result.items() if key not in own}
    return {**{key: result[key] for key in own}, "facts": facts}


def _fresh(result: ProbeResult) -> dict[str, Any]:
    """Return a result of the panel's that has just come."""
    told = msgspec.to_builtins(result)
    facts = {"server": None, "is_suspect": False, "reason": "", **told}
    facts["started_at"] = datetime.fromtimestamp(told["started_ms"] / 1000, now().tzinfo)
    return _shown(facts)


def _range(request: Request, longest: timedelta = LONGEST) -> tuple[datetime, datetime]:
    """Return the range asked for. Raises InvalidInput."""
    end = _moment(request, "to") or now()
    start = _moment(request, "from") or end - DAY
    if not start < end or end - start > longest:
        words = (
            _("A range goes forward, and is of 90 days at most.")
            if longest == LONGEST
            else _("A range goes forward, and is of two years at most.")
        )
        raise InvalidInput(words, field="from")
    return start, end


def _moment(request: Request, name: str) -> datetime | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    field = serializers.DateTimeField()
    try:
        moment: datetime = field.to_internal_value(given)
    except (serializers.ValidationError, OverflowError):
        raise InvalidInput(_("That is no time; write it as 2026-03-10T14:00:00Z."), field=name) from None
    return moment


def _points(request: Request) -> int:
    given = request.query_params.get("points", "96")
    if not (given.isascii() and given.isdecimal() and len(given) < 5 and 1 <= int(given) <= 1000):
        raise InvalidInput(_("`points` is from 1 to 1000."), field="points")
    return int(given)


@extend_schema_view(list=extend_schema(summary="List probes"), retrieve=extend_schema(summary="Show a probe"))
class ProbeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Probe]):
    """Latency probes."""

    queryset = Probe.objects.none()
    serializer_class = ProbeSerializer
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "results", "latency"), Capability.FLEET_VIEW),
        **dict.fromkeys(
            ("create", "partial_update", "destroy", "run", "run_everywhere", "check"), Capability.PROBES_MANAGE
        ),
    }

    def get_queryset(self) -> QuerySet[Probe]:
        """Return every probe."""
        return Probe.objects.order_by("name")

    @extend_schema(summary="Make a probe", request=ProbeSettingsSerializer, responses={201: ProbeSerializer})
    def create(self, request: Request) -> Response:
        """Probe a target from now on."""
        probe = probe_create(actor=Actor.from_request(request), **body_of(request, ProbeSettingsSerializer))
        return Response(ProbeSerializer(probe).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Change a probe", request=ProbeSettingsSerializer, responses=ProbeSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Its results stay, also when its target changes."""
        body = body_of(request, ProbeSettingsSerializer, partial=True)
        return Response(ProbeSerializer(probe_update(probe_id=int(pk), actor=Actor.from_request(request), **body)).data)

    @extend_schema(summary="Remove a probe", responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """It is probed no more; its results go with their day."""
        probe_delete(probe_id=int(pk), actor=Actor.from_request(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Probe once from the panel", request=None, responses=ProbeResultSerializer)
    @action(detail=True, methods=["post"])
    def run(self, request: Request, pk: str) -> Response:
        """Answers with the result, after the target's timeout at the latest."""
        return Response(_fresh(probe_run(probe_id=int(pk), actor=Actor.from_request(request))))

    @extend_schema(
        summary="Probe at once from all its places", request=None, responses={202: ProbeResultSerializer(many=True)}
    )
    @action(detail=True, methods=["post"], url_path="run-everywhere", pagination_class=None)
    def run_everywhere(self, request: Request, pk: str) -> Response:
        """Answers with what the panel found, if it is one of them; agents look within seconds, and tell as always."""
        found = probe_run_everywhere(probe_id=int(pk), actor=Actor.from_request(request))
        return Response([_fresh(each) for each in found], status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Try a probe before it is made", request=ProbeCheckSerializer, responses=ProbeResultSerializer
    )
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        """Probe once from the panel and keep nothing."""
        body = body_of(request, ProbeCheckSerializer)
        _target, found = probe_check(actor=Actor.from_request(request), **body)
        return Response(_fresh(found))

    @extend_schema(
        summary="Read a probe's results",
        parameters=[*_RANGE, OpenApiParameter("limit", int, description=f"At most {MOST_RESULTS}, the newest.")],
        responses=ProbeResultSerializer(many=True),
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def results(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (in kwargs)
        """Return the newest results of a range."""
        start, end = _range(request)
        given = request.query_params.get("limit", "100")
        if not (given.isascii() and given.isdecimal() and len(given) < 5 and int(given) > 0):
            raise InvalidInput(_("`limit` is a number."), field="limit")
        found = results(probe_id=self.get_object().pk, start=start, end=end, limit=int(given))
        return Response([_shown(each) for each in found])

    @extend_schema(
        summary="Read a probe's percentiles",
        parameters=[
            *_RANGE,
            OpenApiParameter("points", int, description="Steps of the series at most; 96 when left out."),
            OpenApiParameter("metric", str, enum=list(METRICS), description="The probe's own when left out."),
        ],
        responses=ProbeLatencySerializer,
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def latency(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (in kwargs)
        """Return exact percentiles over whole steps of five minutes; failures lie over every threshold.

        A range that begins more than 89 days ago, and is of two years at most, is read from hourly histograms.
        """
        probe = self.get_object()
        start, end = _range(request, LONGEST_IN_HOURS)
        metric = request.query_params.get("metric", probe.metric)
        if metric not in METRICS:
            raise InvalidInput(_("It is one of: %(names)s") % {"names": ", ".join(METRICS)}, field="metric")
        asked: dict[str, Any] = {"probe_id": probe.pk, "metric": metric, "start": start, "end": end}
        is_exact = not months.are_needed(start, now())
        whole = (latency if is_exact else months.latency)(**asked, threshold_ms=probe.threshold_ms)
        step, lines = (latency_series if is_exact else months.latency_series)(**asked, points=_points(request))
        return Response(
            {
                "metric": metric,
                "step_seconds": step,
                "is_exact": is_exact,
                "vantages": [
                    {
                        "server": each.server_id or None,
                        "connection": each.connection,
                        "failures": each.failures,
                        "share_over": each.over,
                        "percentiles": [_percentile(one) for one in each.percentiles],
                    }
                    for each in whole
                ],
                "series": [
                    {
                        "server": server_id or None,
                        "connection": connection,
                        "steps": [
                            {"at": at, "percentiles": [_percentile(one) for one in found]} for at, found in steps
                        ],
                    }
                    for (server_id, connection), steps in lines.items()
                ],
            }
        )
