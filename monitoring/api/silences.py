"""Silences over the API: previewed, made, moved, ended."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from monitoring.alerts.acting import silence_create, silence_end
from monitoring.alerts.models import Silence
from monitoring.alerts.selectors import is_active, matched_by, silence_list
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now


class SilenceSerializer(serializers.ModelSerializer[Silence]):
    """Of what matches nobody is told for a time."""

    is_active = serializers.SerializerMethodField(help_text="Whether it hides something at this moment.")

    class Meta:
        model = Silence
        fields = [
            "id", "matchers", "reason", "starts_at", "ends_at", "zone", "window", "is_maintenance", "is_active",
            "suppressed", "created_at", "created_by_name", "ended_by_name",
        ]  # fmt: skip
        read_only_fields = fields

    def get_is_active(self, silence: Silence) -> bool:
        """Return whether it holds now."""
        return is_active(silence, at=now())


class MatchersSerializer(serializers.Serializer[Any]):
    """What must hold, all of it."""

    matchers = serializers.DictField(
        child=serializers.CharField(max_length=200),
        help_text="rule, family, severity, kind, subject (`endpoint:12`), server (its id), or a label.",
    )


class SilenceBodySerializer(MatchersSerializer):
    """What a silence is made of."""

    reason = serializers.CharField(max_length=500)
    ends_at = serializers.DateTimeField()
    starts_at = serializers.DateTimeField(required=False, help_text="Now when left out.")
    zone = serializers.CharField(max_length=64, required=False, help_text="IANA, of the weekly window.")
    window = serializers.DictField(required=False, help_text='{"days": [0], "from": "22:00", "to": "08:00"}, Monday 0.')
    is_maintenance = serializers.BooleanField(required=False, help_text="What is measured counts for no rule either.")


class SilenceEndSerializer(serializers.Serializer[Any]):
    """When it ends."""

    ends_at = serializers.DateTimeField(required=False, help_text="Now when left out.")


class SilenceMatchSerializer(serializers.Serializer[Any]):
    """What it hides now, and what it could."""

    episodes = serializers.ListField(child=serializers.IntegerField())
    subjects = serializers.ListField(child=serializers.DictField(), help_text="50 at most.")
    total_subjects = serializers.IntegerField()


@extend_schema_view(list=extend_schema(summary="List silences"), retrieve=extend_schema(summary="Show a silence"))
class SilenceViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Silence]):
    """Silences."""

    queryset = Silence.objects.none()
    serializer_class = SilenceSerializer
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "preview"), Capability.FLEET_VIEW),
        **dict.fromkeys(("create", "end"), Capability.ALERTS_MANAGE),
    }

    def get_queryset(self) -> QuerySet[Silence]:
        """Return silences; those that are over stay for a week."""
        return silence_list(at=now())

    @extend_schema(summary="Make a silence", request=SilenceBodySerializer, responses={201: SilenceSerializer})
    def create(self, request: Request) -> Response:
        """Nobody is told of what matches; what ends meanwhile is told to whoever heard that it began."""
        silence = silence_create(actor=Actor.from_request(request), **body_of(request, SilenceBodySerializer))
        return Response(SilenceSerializer(silence).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="End or move a silence", request=SilenceEndSerializer, responses=SilenceSerializer)
    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str) -> Response:
        """What still fires is told at the next round."""
        body = body_of(request, SilenceEndSerializer)
        return Response(
            SilenceSerializer(silence_end(actor=Actor.from_request(request), silence_id=int(pk), **body)).data
        )

    @extend_schema(
        summary="See what a silence would hide", request=MatchersSerializer, responses=SilenceMatchSerializer
    )
    @action(detail=False, methods=["post"])
    def preview(self, request: Request) -> Response:
        """Alerts that match now, and subjects that could."""
        found = matched_by(body_of(request, MatchersSerializer)["matchers"])
        return Response(
            {
                "episodes": [row.pk for row in found.episodes],
                "subjects": [{"kind": each.kind, "id": each.id, "name": each.name} for each in found.subjects],
                "total_subjects": found.total_subjects,
            }
        )
