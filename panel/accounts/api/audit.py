"""The audit trail and the events over the API: read only, filtered, and the trail as CSV."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request

from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability
from panel.accounts.models import AuditEntry
from panel.accounts.selectors.audit import audit_list, event_list
from panel.core.enums import Severity
from panel.core.models import Event
from panel.core.spreadsheet import csv_lines

MAX_EXPORTED: Final = 50_000
BIGINT_MAX: Final = 2**63 - 1
COLUMNS: Final = (
    "id", "at", "actor_kind", "actor_id", "actor_name", "action", "target_kind", "target_id", "target_name",
    "before", "after", "reason", "request_id", "address",
)  # fmt: skip


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    """Who did what to which object."""

    before = serializers.DictField(allow_null=True, read_only=True)
    after = serializers.DictField(allow_null=True, read_only=True)

    class Meta:
        model = AuditEntry
        fields = list(COLUMNS)
        read_only_fields = fields


class PeriodSerializer(serializers.Serializer[Any]):
    """A stretch of time: from (included) to (excluded), ISO 8601."""

    to = serializers.DateTimeField(required=False, source="end")
    search = serializers.CharField(required=False, max_length=100)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`, a word that Python keeps for itself."""
        return {"from": serializers.DateTimeField(required=False, source="start"), **super().get_fields()}


class AuditFilterSerializer(PeriodSerializer):
    """Filters of the audit trail."""

    actor = serializers.CharField(required=False, max_length=100, help_text="Part of the actor's name.")
    actor_kind = serializers.ChoiceField(choices=["user", "token", "agent", "system", "stranger"], required=False)
    action = serializers.CharField(required=False, max_length=64, help_text="`token.create`, or a family: `token.`")
    target_kind = serializers.CharField(required=False, max_length=32)
    target_id = serializers.IntegerField(required=False, min_value=0, max_value=BIGINT_MAX)


class EventFilterSerializer(PeriodSerializer):
    """Filters of the events."""

    kind = serializers.CharField(required=False, max_length=64, help_text="`gpu.xid`, or a family: `gpu.`")
    severity = serializers.ChoiceField(choices=Severity.choices, required=False)
    subject_kind = serializers.CharField(required=False, max_length=32)
    subject_id = serializers.IntegerField(required=False, min_value=0, max_value=BIGINT_MAX)
    server_id = serializers.IntegerField(required=False, min_value=0, max_value=BIGINT_MAX)


def _filters(serializer_class: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    query = serializer_class(data=request.query_params.dict())
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)


def _cells(rows: QuerySet[AuditEntry]) -> Iterator[list[Any]]:
    for row in rows[:MAX_EXPORTED].values_list(*COLUMNS).iterator(chunk_size=1_000):
        yield [json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict) else cell for cell in row]


@extend_schema_view(
    list=extend_schema(summary="List the audit trail", parameters=[AuditFilterSerializer]),
    retrieve=extend_schema(summary="Show an entry of the audit trail"),
)
class AuditViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[AuditEntry]):
    """Who did what, newest first."""

    queryset = AuditEntry.objects.none()
    serializer_class = AuditSerializer
    lookup_value_regex = r"\d+"
    ordering = ("-at", "-id")
    capability: ClassVar[CapabilityTable] = dict.fromkeys(("list", "retrieve", "export"), Capability.AUDIT_VIEW)

    def get_queryset(self) -> QuerySet[AuditEntry]:
        """Return what the query asks for."""
        return audit_list() if self.detail else audit_list(**_filters(AuditFilterSerializer, self.request))

    @extend_schema(
        summary="The audit trail as CSV",
        description="At most 50,000 entries, the newest. Cells that a spreadsheet would run as formulas are quoted.",
        parameters=[AuditFilterSerializer],
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    @action(detail=False, methods=["get"], pagination_class=None)
    def export(self, request: Request) -> HttpResponse:  # noqa: ARG002 (the framework's signature)
        """Return the file."""
        lines = csv_lines(COLUMNS, _cells(self.get_queryset()))
        answer = HttpResponse("".join(lines), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="fleetdeck-audit.csv"'
        return answer


class EventSerializer(serializers.ModelSerializer[Event]):
    """Something that happened."""

    class Meta:
        model = Event
        fields = ["id", "at", "kind", "severity", "subject_kind", "subject_id", "subject_name", "server_id", "data"]
        read_only_fields = fields


@extend_schema_view(
    list=extend_schema(summary="List events", parameters=[EventFilterSerializer]),
    retrieve=extend_schema(summary="Show an event"),
)
class EventViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Event]):
    """What happened to servers, GPUs and agents, newest first."""

    queryset = Event.objects.none()
    serializer_class = EventSerializer
    lookup_value_regex = r"\d+"
    ordering = ("-at", "-id")
    capability: ClassVar[CapabilityTable] = Capability.EVENTS_VIEW

    def get_queryset(self) -> QuerySet[Event]:
        """Return what the query asks for."""
        return event_list() if self.detail else event_list(**_filters(EventFilterSerializer, self.request))
