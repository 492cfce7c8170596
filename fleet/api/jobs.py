"""Jobs over the API, watched and called off; acceptance checks of a server, begun and read."""

from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.filters import SelectorFilters, any_of, number
from fleet.enums import JobKind, JobState
from fleet.leasing.acceptance_lines import Source, Verdict
from fleet.models import Job, Server
from fleet.selectors.jobs import acceptance_list, acceptance_report, job_list
from fleet.services.acceptance import acceptance_start
from fleet.services.jobs import job_cancel
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import NotFound

_MOST: Final = 2**53
_VERDICTS: Final = [(each.value, each.value) for each in Verdict]


class JobSerializer(serializers.ModelSerializer[Job]):
    """A one-shot command for an agent."""

    server_name = serializers.CharField(source="server.name", read_only=True)
    percent = serializers.SerializerMethodField()
    step = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = [
            "id",
            "kind",
            "server",
            "server_name",
            "state",
            "percent",
            "step",
            "reason",
            "detail",
            "actor_name",
            "created_at",
            "claimed_at",
            "ended_at",
            "expires_at",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_percent(self, job: Job) -> int | None:
        """Return how far it is."""
        percent: int | None = job.progress.get("percent")
        return percent

    @extend_schema_field(serializers.CharField())
    def get_step(self, job: Job) -> str:
        """Return what is being done."""
        return str(job.progress.get("step", ""))


class LineSerializer(serializers.Serializer[Any]):
    """One thing, ordered and found, in base units (bytes, watts, milliseconds, shares)."""

    code = serializers.CharField()
    gpu = serializers.IntegerField(allow_null=True, source="subject", help_text="The card's index; null: the machine.")
    kind = serializers.CharField()
    ordered = serializers.JSONField(allow_null=True)
    found = serializers.JSONField(allow_null=True)
    tolerance = serializers.FloatField(allow_null=True, help_text="0.1: a tenth may lack.")
    origin = serializers.ChoiceField(
        [(each.value, each.value) for each in Source],
        allow_null=True,
        source="source",
        help_text="Where the expectation is from.",
    )
    verdict = serializers.ChoiceField(_VERDICTS, help_text="noted: nothing was expected.")
    reason = serializers.CharField(help_text="Why it is not proven.")


class AcceptanceSerializer(JobSerializer):
    """An acceptance check with its verdict."""

    verdict = serializers.SerializerMethodField()

    class Meta(JobSerializer.Meta):
        fields = [*JobSerializer.Meta.fields, "verdict"]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(_VERDICTS, allow_null=True))
    def get_verdict(self, job: Job) -> str | None:
        """Return what all lines say together; null before it succeeded."""
        report = acceptance_report(job)
        return str(report.verdict) if report is not None else None


class AcceptanceDetailSerializer(AcceptanceSerializer):
    """An acceptance check with every line, what was expected, and all that was found."""

    lines = serializers.SerializerMethodField()
    expected = serializers.JSONField(source="context.typed", read_only=True)
    lease = serializers.IntegerField(source="context.lease_id", read_only=True, allow_null=True)
    found = serializers.JSONField(source="result", read_only=True)

    class Meta(AcceptanceSerializer.Meta):
        fields = [*AcceptanceSerializer.Meta.fields, "lease", "expected", "lines", "found"]
        read_only_fields = fields

    @extend_schema_field(LineSerializer(many=True))
    def get_lines(self, job: Job) -> list[dict[str, Any]]:
        """Return the report line by line, empty before it succeeded."""
        report = acceptance_report(job)
        return [dict(LineSerializer(line).data) for line in report.lines] if report is not None else []


class ExpectedSerializer(serializers.Serializer[Any]):
    """What is expected beside, or instead of, what the lease says; everything is optional."""

    gpu_model = serializers.CharField(max_length=64, required=False)
    gpu_count = serializers.IntegerField(min_value=1, max_value=64, required=False)
    gpu_memory_bytes = serializers.IntegerField(min_value=1, max_value=_MOST, required=False)
    cpu_count = serializers.IntegerField(min_value=1, max_value=4096, required=False)
    memory_bytes = serializers.IntegerField(min_value=1, max_value=_MOST, required=False)
    disk_bytes = serializers.IntegerField(min_value=1, max_value=_MOST, required=False)
    disk_kind = serializers.ChoiceField(["nvme", "ssd", "rotational"], required=False)
    disk_read_bytes_per_second = serializers.IntegerField(min_value=1, max_value=_MOST, required=False)
    pcie_generation = serializers.IntegerField(min_value=1, max_value=8, required=False)
    pcie_width = serializers.IntegerField(min_value=1, max_value=32, required=False)
    has_nvlink = serializers.BooleanField(required=False, allow_null=True, default=None)
    power_watts = serializers.IntegerField(min_value=1, max_value=100_000, required=False)
    driver_version = serializers.CharField(max_length=64, required=False, help_text="At least this.")
    cuda_version = serializers.CharField(max_length=64, required=False, help_text="At least this.")
    downlink_bytes_per_second = serializers.IntegerField(min_value=1, max_value=_MOST, required=False)
    uplink_bytes_per_second = serializers.IntegerField(min_value=1, max_value=_MOST, required=False)
    round_trip_ms = serializers.FloatField(min_value=0.001, max_value=60_000, required=False)
    hops = serializers.IntegerField(min_value=1, max_value=64, required=False)


class AcceptanceStartSerializer(serializers.Serializer[Any]):
    """What to compare with, and where to measure the way to."""

    expected = ExpectedSerializer(required=False)
    target = serializers.CharField(
        max_length=300,
        required=False,
        allow_blank=True,
        default="",
        help_text="A host, host:port or https:// address; down- and uplink are measured to the latter.",
    )


class JobFilters(SelectorFilters):
    """Filters of jobs."""

    server = number("Of this server.")
    kind = any_of(JobKind.choices, "Of this kind.")
    state = any_of(JobState.choices, "In this state.")
    is_open = filters.BooleanFilter(help_text="Under way, or over.")
    select: ClassVar[Any] = staticmethod(job_list)


@extend_schema_view(list=extend_schema(summary="List jobs"), retrieve=extend_schema(summary="Show a job"))
class JobViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Job]):
    """One-shot commands for agents."""

    queryset = Job.objects.none()
    serializer_class = JobSerializer
    lookup_value_regex = r"\d+"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = JobFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        "cancel": Capability.SERVERS_MANAGE,
    }

    def get_queryset(self) -> QuerySet[Job]:
        """Return every job."""
        return job_list().defer("result", "context")

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)

    @extend_schema(summary="Call a job off", request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """The agent stops it within a second or two."""
        job = job_cancel(job_id=int(pk), actor=Actor.from_request(request))
        return Response(JobSerializer(job).data, status=status.HTTP_202_ACCEPTED)


@extend_schema(parameters=[OpenApiParameter("server_pk", int, OpenApiParameter.PATH, description="Id of the server.")])
@extend_schema_view(
    list=extend_schema(summary="List a server's acceptance checks"),
    retrieve=extend_schema(summary="Show an acceptance check line by line"),
)
class AcceptanceViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Job]):
    """Is the machine what is paid for?"""

    queryset = Job.objects.none()
    serializer_class = AcceptanceSerializer
    lookup_value_regex = r"\d+"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        "create": Capability.SERVERS_MANAGE,
    }

    def get_queryset(self) -> QuerySet[Job]:
        """Return the server's checks. Raises NotFound without the server."""
        server_id = int(self.kwargs["server_pk"])
        if not Server.objects.filter(pk=server_id).exists():
            raise NotFound("There is no such server.")
        return acceptance_list(server=server_id).order_by()

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Return the lines with one check only."""
        return AcceptanceDetailSerializer if self.detail else AcceptanceSerializer

    @extend_schema(
        summary="Check whether a server is what was ordered",
        description="Its agent measures for about a minute; watch the job, or the live topic `job.<id>`.",
        request=AcceptanceStartSerializer,
        responses={202: AcceptanceSerializer},
    )
    def create(self, request: Request, server_pk: str) -> Response:
        """Begin a check."""
        body = body_of(request, AcceptanceStartSerializer)
        job = acceptance_start(
            server_id=int(server_pk),
            actor=Actor.from_request(request),
            expected=body.get("expected"),
            target=body["target"],
        )
        return Response(AcceptanceSerializer(job).data, status=status.HTTP_202_ACCEPTED)
