"""Go-live tests over the API: listed, read with everything they proved, called off. They are begun at their endpoint."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from monitoring.golive.enums import Outcome
from monitoring.golive_runs.models import GoLivePart, GoLiveRun
from monitoring.golive_runs.reading import run_list, shots_of
from monitoring.golive_runs.starting import golive_cancel
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability

_OUTCOMES = [(each.value, each.value) for each in Outcome]


class GoLivePartSerializer(serializers.ModelSerializer[GoLivePart]):
    """What one place sent and what that proves."""

    server = serializers.SerializerMethodField(help_text="null: the panel.")

    class Meta:
        model = GoLivePart
        fields = [
            "id", "server", "state", "phase", "seconds", "sent", "failed", "loop_lag_ms", "stopped", "detail", "steps",
            "judgement",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_server(self, part: GoLivePart) -> int | None:
        """Return the server's id, None for the panel."""
        return part.server_id or None


class GoLiveRunSerializer(serializers.ModelSerializer[GoLiveRun]):
    """One go-live test."""

    outcome = serializers.ChoiceField(_OUTCOMES, allow_blank=True, read_only=True, help_text="Empty until it ended.")
    parts = GoLivePartSerializer(many=True, read_only=True)

    class Meta:
        model = GoLiveRun
        fields = [
            "id", "subject_kind", "subject_id", "subject_name", "state", "outcome", "asked", "estimate", "facts",
            "environment_hash", "has_changed", "time_scale", "saturation", "rollout_id", "actor_name", "created_at",
            "started_at", "ended_at", "parts",
        ]  # fmt: skip
        read_only_fields = fields


class ShotsSerializer(serializers.Serializer[Any]):
    """Every request of one place."""

    part = serializers.IntegerField()
    server = serializers.IntegerField(allow_null=True)
    plan = serializers.DictField(help_text="When each was due, and how long its prompt was.")
    columns = serializers.ListField(child=serializers.CharField())
    requests = serializers.ListField(child=serializers.ListField())


COLUMNS = (
    "number", "step", "at_seconds", "is_ok", "in_flight", "total_ms", "ttft_ms", "e2e_ms", "tpot_ms", "tokens", "outcome",
    "detail",
)  # fmt: skip


@extend_schema_view(
    list=extend_schema(summary="List go-live tests"), retrieve=extend_schema(summary="Show a go-live test")
)
class GoLiveViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[GoLiveRun]):
    """Go-live tests."""

    queryset = GoLiveRun.objects.none()
    serializer_class = GoLiveRunSerializer
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "requests"), Capability.FLEET_VIEW),
        "cancel": Capability.GOLIVE_RUN,
    }

    def get_queryset(self) -> QuerySet[GoLiveRun]:
        """Return every test, the newest first."""
        return run_list()

    @extend_schema(summary="Cancel a go-live test", request=None, responses={202: GoLiveRunSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Its places stop within seconds."""
        run = golive_cancel(run_id=int(pk), actor=Actor.from_request(request))
        found = run_list().get(pk=run.pk)
        return Response(GoLiveRunSerializer(found).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Read every request of a go-live test", responses=ShotsSerializer(many=True), filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def requests(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (in kwargs)
        """Return plans and requests, for another tool's analysis."""
        parts = GoLivePart.objects.filter(run=self.get_object()).defer("bearer").order_by("pk")
        return Response(
            [
                {
                    "part": part.pk,
                    "server": part.server_id or None,
                    "plan": part.plan,
                    "columns": COLUMNS,
                    "requests": shots_of(part),
                }
                for part in parts
            ]
        )
