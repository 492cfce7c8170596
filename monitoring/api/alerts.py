"""Alerts over the API: episodes with their timeline and who was told; acknowledged and noted."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from monitoring.alerts.acting import episode_acknowledge, episode_note, episode_unacknowledge
from monitoring.alerts.models import Episode, EpisodeEntry
from monitoring.alerts.selectors import STATES, deliveries, episode_list, pending_list
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.enums import Severity


class EpisodeSerializer(serializers.ModelSerializer[Episode]):
    """One incident of a subject and a family of rules."""

    is_firing = serializers.SerializerMethodField(help_text="Whether it fires now.")

    class Meta:
        model = Episode
        fields = [
            "id", "family", "subject_kind", "subject_id", "subject_name", "host_id", "severity", "rules", "is_firing",
            "opened_at", "changed_at", "resolved_at", "closed_at", "frozen_since", "is_told", "is_flapping", "muted_by",
            "muted_ref", "evidence", "acknowledged_at", "acknowledged_until", "acknowledged_by_name", "version",
        ]  # fmt: skip
        read_only_fields = fields

    def get_is_firing(self, episode: Episode) -> bool:
        """Return whether it fires."""
        return episode.resolved_at is None


class EntrySerializer(serializers.ModelSerializer[EpisodeEntry]):
    """One line of the timeline."""

    class Meta:
        model = EpisodeEntry
        fields = ["id", "at", "kind", "data", "text", "actor_name"]
        read_only_fields = fields


class ToldSerializer(serializers.Serializer[Any]):
    """What was told to one recipient."""

    seq = serializers.IntegerField()
    kind = serializers.CharField()
    channel = serializers.CharField()
    recipient = serializers.CharField()
    status = serializers.CharField()
    delivered_at = serializers.DateTimeField(allow_null=True)


class EpisodeDetailSerializer(EpisodeSerializer):
    """An episode with its timeline, and who was told what."""

    timeline = EntrySerializer(many=True, source="entries")
    told = serializers.SerializerMethodField()

    class Meta(EpisodeSerializer.Meta):
        fields = [*EpisodeSerializer.Meta.fields, "timeline", "told"]
        read_only_fields = fields

    def get_told(self, episode: Episode) -> list[dict[str, Any]]:
        """Return who was told what."""
        return [
            {
                "seq": row.seq, "kind": row.kind, "channel": row.channel_name, "recipient": row.recipient,
                "status": row.status, "delivered_at": row.delivered_at,
            }
            for row in deliveries([episode]).get(episode.pk, [])
        ]  # fmt: skip


class PendingSerializer(serializers.Serializer[Any]):
    """A breach that has not lasted long enough yet."""

    rule = serializers.CharField(source="rule.key")
    subject_kind = serializers.CharField()
    subject_id = serializers.IntegerField()
    subject_name = serializers.CharField(source="subject.name", default="")
    since = serializers.DateTimeField()
    for_seconds = serializers.FloatField()


class AcknowledgeSerializer(serializers.Serializer[Any]):
    """Until when somebody takes care."""

    until = serializers.DateTimeField(required=False, help_text="A day from now when left out; seven days at most.")
    text = serializers.CharField(max_length=2_000, required=False, allow_blank=True)


class NoteSerializer(serializers.Serializer[Any]):
    """A line for the timeline."""

    text = serializers.CharField(max_length=2_000)


@extend_schema_view(
    list=extend_schema(
        summary="List alerts",
        parameters=[
            OpenApiParameter("state", str, enum=list(STATES)),
            OpenApiParameter("severity", str, enum=list(Severity.values)),
            OpenApiParameter("family", str),
        ],
    )
)
class AlertViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Episode]):
    """Episodes of alerts."""

    queryset = Episode.objects.none()
    serializer_class = EpisodeSerializer
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "pending"), Capability.FLEET_VIEW),
        **dict.fromkeys(("acknowledge", "unacknowledge", "note"), Capability.ALERTS_MANAGE),
    }

    def get_queryset(self) -> QuerySet[Episode]:
        """Return episodes as asked for, the newest first."""
        asked = self.request.query_params
        state, severity = asked.get("state", ""), asked.get("severity", "")
        return episode_list(
            state=state if state in STATES else "",
            severity=severity if severity in Severity.values else "",
            family=asked.get("family", ""),
        )

    @extend_schema(summary="Show an alert", responses=EpisodeDetailSerializer)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ARG002 (the framework's signature)
        """With its timeline and who was told."""
        return Response(EpisodeDetailSerializer(self.get_object()).data)

    @extend_schema(summary="List what is pending", responses=PendingSerializer(many=True))
    @action(detail=False, methods=["get"], pagination_class=None)
    def pending(self, request: Request) -> Response:  # noqa: ARG002 (the same)
        """Breaches that have not lasted long enough to fire; 500 at most, the oldest first."""
        return Response(PendingSerializer(pending_list(), many=True).data)

    @extend_schema(summary="Acknowledge an alert", request=AcknowledgeSerializer, responses=EpisodeDetailSerializer)
    @action(detail=True, methods=["post"])
    def acknowledge(self, request: Request, pk: str) -> Response:
        """No reminders until then."""
        body = body_of(request, AcknowledgeSerializer)
        found = episode_acknowledge(actor=Actor.from_request(request), episode_id=int(pk), **body)
        return Response(EpisodeDetailSerializer(found).data)

    @extend_schema(summary="Take an acknowledgement back", request=None, responses=EpisodeDetailSerializer)
    @action(detail=True, methods=["post"])
    def unacknowledge(self, request: Request, pk: str) -> Response:
        """Reminders come again."""
        found = episode_unacknowledge(actor=Actor.from_request(request), episode_id=int(pk))
        return Response(EpisodeDetailSerializer(found).data)

    @extend_schema(summary="Note something about an alert", request=NoteSerializer, responses=EpisodeDetailSerializer)
    @action(detail=True, methods=["post"])
    def note(self, request: Request, pk: str) -> Response:
        """Write a line into its timeline."""
        body = body_of(request, NoteSerializer)
        return Response(
            EpisodeDetailSerializer(episode_note(actor=Actor.from_request(request), episode_id=int(pk), **body)).data
        )
