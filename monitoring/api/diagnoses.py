"""Diagnoses over the API: begun, with or without consent to load the engine; watched; read with their evidence; called off."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.filters import SelectorFilters, any_of, number
from monitoring.diagnosing.asked import Host
from monitoring.diagnosing.enums import ReportState
from monitoring.diagnosing.following import diagnosis_cancel
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.reading import report_list
from monitoring.diagnosing.starting import MOST_ROUNDS, ROUNDS, diagnosis_start
from monitoring.diagnosis import words
from monitoring.diagnosis.enums import Level, Verdict
from monitoring.diagnosis.report import Diagnosis
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability

VERDICTS = [(each.value, each.value) for each in Verdict]
LEVELS = [(each.value, each.value) for each in Level]


class DiagnosisSerializer(serializers.ModelSerializer[DiagnosisReport]):
    """A diagnosis in one line."""

    verdict = serializers.ChoiceField(VERDICTS, allow_blank=True, read_only=True, help_text="Empty until it is done.")
    level = serializers.ChoiceField(LEVELS, allow_blank=True, read_only=True, help_text="How sure it is.")
    percent = serializers.SerializerMethodField()
    step = serializers.SerializerMethodField()
    has_sweeps = serializers.SerializerMethodField()
    sentence = serializers.SerializerMethodField()
    next_step = serializers.SerializerMethodField()

    class Meta:
        model = DiagnosisReport
        fields = [
            "id", "state", "cause", "probe", "subject_kind", "subject_id", "subject_name", "metric", "threshold_ms",
            "percentile", "verdict", "level", "sentence", "next_step", "percent", "step", "has_sweeps", "failure", "detail",
            "created_at", "created_by_name", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_percent(self, report: DiagnosisReport) -> int | None:
        """Return how far it is while it measures."""
        percent: int | None = report.progress.get("percent")
        return percent

    @extend_schema_field(serializers.CharField())
    def get_step(self, report: DiagnosisReport) -> str:
        """Return what is being done: waiting, rounds, lengths, concurrency."""
        return str(report.progress.get("step", ""))

    @extend_schema_field(serializers.BooleanField())
    def get_has_sweeps(self, report: DiagnosisReport) -> bool:
        """Say whether somebody agreed to load the engine."""
        return report.sweeps is not None

    @extend_schema_field(serializers.CharField())
    def get_sentence(self, report: DiagnosisReport) -> str:
        """Return the verdict as one sentence, in the language of the request."""
        return words.why(Diagnosis.from_json(report.diagnosis)) if report.diagnosis else ""

    @extend_schema_field(serializers.CharField())
    def get_next_step(self, report: DiagnosisReport) -> str:
        """Return the one next step as a sentence, in the language of the request."""
        return words.next_step(Diagnosis.from_json(report.diagnosis).action) if report.diagnosis else ""


class DiagnosisDetailSerializer(DiagnosisSerializer):
    """A diagnosis with the numbers, and everything that was measured."""

    diagnosis = serializers.JSONField(
        read_only=True, allow_null=True, help_text="Verdict, confidence, numbers, changes."
    )
    places = serializers.JSONField(read_only=True, help_text="Who measured, in which slots.")
    found = serializers.JSONField(read_only=True, help_text="What each place measured, by its key.")
    evidence = serializers.JSONField(read_only=True, help_text="Cards, processors and starts of the same minutes.")

    class Meta(DiagnosisSerializer.Meta):
        fields = [
            *DiagnosisSerializer.Meta.fields, "begin_at", "slot_seconds", "rounds", "sweeps", "places", "found", "evidence",
            "diagnosis",
        ]  # fmt: skip
        read_only_fields = fields


class HostSerializer(serializers.Serializer[Any]):
    """A machine on which the engine runs."""

    server = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    port = serializers.IntegerField(min_value=1, max_value=65_535, help_text="Of the engine, on that machine.")


class DiagnosisStartSerializer(serializers.Serializer[Any]):
    """What to look into."""

    probe = serializers.IntegerField(min_value=1, max_value=2**62)
    hosts = HostSerializer(
        many=True, required=False, help_text="For probes that belong to no endpoint: where the engine runs."
    )
    has_sweeps = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Consent to load the engine: at most 400 requests, 250,000 tokens and 5 minutes.",
    )
    rounds = serializers.IntegerField(required=False, min_value=30, max_value=MOST_ROUNDS, default=ROUNDS)
    threshold_ms = serializers.FloatField(
        required=False, min_value=0.001, max_value=3_600_000, help_text="The probe's own when left out."
    )


class DiagnosisFilters(SelectorFilters):
    """Filters of diagnoses."""

    probe = number("Of this probe.")
    endpoint = number("Of this endpoint.")
    state = any_of(ReportState.choices, "In this state.")
    verdict = any_of(VERDICTS, "With this verdict.")
    is_open = filters.BooleanFilter(help_text="Under way, or over.")
    select: ClassVar[Any] = staticmethod(report_list)


@extend_schema_view(
    list=extend_schema(summary="List diagnoses"), retrieve=extend_schema(summary="Show a diagnosis with its evidence")
)
class DiagnosisViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[DiagnosisReport]):
    """Why is it slow?"""

    queryset = DiagnosisReport.objects.none()
    serializer_class = DiagnosisSerializer
    lookup_value_regex = r"\d{1,18}"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = DiagnosisFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        **dict.fromkeys(("create", "cancel"), Capability.DIAGNOSES_RUN),
    }

    def get_queryset(self) -> QuerySet[DiagnosisReport]:
        """Return every diagnosis."""
        found = report_list().order_by()
        return found if self.detail else found.defer("found", "evidence")

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Return the evidence with one diagnosis only."""
        return DiagnosisDetailSerializer if self.action == "retrieve" else DiagnosisSerializer

    @extend_schema(
        summary="Find out why something is slow",
        description="Measures for some minutes; watch the diagnosis, or the live topic `diagnosis.<id>`.",
        request=DiagnosisStartSerializer,
        responses={202: DiagnosisSerializer},
    )
    def create(self, request: Request) -> Response:
        """Begin a diagnosis."""
        body = body_of(request, DiagnosisStartSerializer)
        report = diagnosis_start(
            probe_id=body["probe"],
            actor=Actor.from_request(request),
            hosts=[Host(server_id=each["server"], port=each["port"]) for each in body.get("hosts", [])],
            has_sweeps=body["has_sweeps"],
            rounds=body["rounds"],
            threshold_ms=body.get("threshold_ms"),
        )
        return Response(DiagnosisSerializer(report).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Call a diagnosis off", request=None, responses={202: DiagnosisSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Its places stop within seconds."""
        report = diagnosis_cancel(report_id=int(pk), actor=Actor.from_request(request))
        return Response(DiagnosisSerializer(report).data, status=status.HTTP_202_ACCEPTED)
