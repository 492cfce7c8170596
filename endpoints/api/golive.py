"""Go-live tests of an endpoint over the API: what one would take, and beginning it."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from endpoints.api.fields import endpoint_named
from endpoints.services.gating import gate_again
from endpoints.services.golive import HOSTS, endpoint_golive, endpoint_golive_estimate
from monitoring.api.golive import GoLiveRunSerializer
from monitoring.golive_runs.asked import asked_read
from monitoring.golive_runs.reading import run_list
from panel.accounts.api.bodies import body_of
from panel.accounts.audit import Actor


class GoLiveAskedSerializer(serializers.Serializer[Any]):
    """A go-live test."""

    asked = serializers.DictField(
        help_text="`peak_per_second`, and what differs from the usual promise: p95_ms, p99_ms, measure, error_rate, lengths, "
        "max_tokens, seconds, most_seconds, most_requests, most_tokens, …: see the documentation of go-live tests."
    )
    places = serializers.ListField(
        child=serializers.CharField(max_length=32), max_length=50, default=[HOSTS],
        help_text="`hosts`: each replica from its own machine; `panel`, `server:<id>`: from there, through the gateway.",
    )  # fmt: skip
    key = serializers.CharField(
        max_length=500, allow_blank=True, default="", write_only=True, help_text="A caller's key, for places outside."
    )


class GoLiveStartSerializer(GoLiveAskedSerializer):
    """A go-live test that begins."""

    consent = serializers.BooleanField(help_text="Agreed: the endpoint is loaded as by many callers.")


class GoLiveEstimateSerializer(serializers.Serializer[Any]):
    """What a test would take."""

    requests = serializers.IntegerField()
    tokens = serializers.IntegerField()
    seconds = serializers.FloatField()
    steps_seconds = serializers.FloatField()
    step_tokens = serializers.IntegerField()
    cost = serializers.DictField(child=serializers.CharField(), help_text="Of its cards meanwhile, by currency.")


class EndpointGoLive:
    """The addresses below an endpoint: `golive-estimate/`, `golive/`, `gate-again/`."""

    @extend_schema(
        summary="Say what a go-live test would take", request=GoLiveAskedSerializer, responses=GoLiveEstimateSerializer
    )
    @action(detail=True, methods=["post"], url_path="golive-estimate")
    def golive_estimate(self, request: Request, name: str) -> Response:
        """Plan it and send nothing; a plan over one of its caps is refused with the cap's name."""
        body = body_of(request, GoLiveAskedSerializer)
        asked = asked_read(body.pop("asked"))
        estimate, cost = endpoint_golive_estimate(endpoint_id=endpoint_named(name).pk, asked=asked, **body)
        amounts = {code: f"{amount:.4f}" for code, amount in cost.items()}
        return Response({**estimate.as_json(), "cost": amounts})

    @extend_schema(summary="Begin a go-live test", request=GoLiveStartSerializer, responses={202: GoLiveRunSerializer})
    @action(detail=True, methods=["post"])
    def golive(self, request: Request, name: str) -> Response:
        """Load the endpoint from the chosen places, and prove whether it keeps its promise."""
        body = body_of(request, GoLiveStartSerializer)
        asked = asked_read(body.pop("asked"))
        actor = Actor.from_request(request)
        run = endpoint_golive(endpoint_id=endpoint_named(name).pk, actor=actor, asked=asked, **body)
        return Response(GoLiveRunSerializer(run_list().get(pk=run.pk)).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Run the test of a rollout's gate again", request=None, responses={202: None})
    @action(detail=True, methods=["post"], url_path="gate-again")
    def gate_again(self, request: Request, name: str) -> Response:
        """For a test that proved nothing, was invalid, or was called off."""
        gate_again(endpoint_id=endpoint_named(name).pk, actor=Actor.from_request(request))
        return Response(status=status.HTTP_202_ACCEPTED)
