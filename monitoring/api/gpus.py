"""GPUs over the API, each with its newest readings."""

from dataclasses import asdict
from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.advice import gpu_advice, health_advice
from fleet.api.filters import GpuFilters
from fleet.api.serializers import AdviceSerializer
from fleet.models import Gpu
from fleet.selectors import gpu_history, gpu_list
from fleet.services.gpus import gpu_forget
from monitoring.activity import Activity
from monitoring.cards import card_activity, fleet_summary, is_latest_fresh, narrow, with_process_count
from monitoring.metrics import GPU_METRICS
from monitoring.selectors import Latest, latest_for_gpus
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now


class LatestSerializer(serializers.Serializer[Any]):
    """The newest sample: every metric by its name, null where the card gave none."""

    at = serializers.DateTimeField(help_text="When it was taken, by the panel's clock.")
    age_seconds = serializers.FloatField()
    is_fresh = serializers.BooleanField(
        help_text="False once three intervals have passed: an old value is no value of now."
    )
    clock_event_reasons = serializers.IntegerField(allow_null=True, help_text="NVML's bit mask.")
    performance_state = serializers.IntegerField(allow_null=True)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add the metrics of the catalogue."""
        metrics = {
            metric.name: serializers.FloatField(allow_null=True, help_text=metric.unit) for metric in GPU_METRICS
        }
        return {**super().get_fields(), **metrics}


class GpuSerializer(serializers.ModelSerializer[Gpu]):
    """A card, or a MIG slice of one, as lists show it. The UUID names it; the index is a label."""

    server_name = serializers.CharField(source="server.name", read_only=True)
    activity = serializers.SerializerMethodField()
    latest = serializers.SerializerMethodField()
    advice = serializers.SerializerMethodField()

    class Meta:
        model = Gpu
        fields = [
            "id",
            "uuid",
            "index",
            "name",
            "vendor",
            "server",
            "server_name",
            "parent",
            "state",
            "state_reason",
            "state_changed_at",
            "advice",
            "activity",
            "memory_total_bytes",
            "power_limit_watts",
            "pci_bus_id",
            "processes_visibility",
            "processes_at",
            "health_at",
            "first_seen_at",
            "last_seen_at",
            "latest",
        ]
        read_only_fields = fields

    def _latest(self, gpu: Gpu) -> Latest | None:
        found: dict[int, Latest] = self.context["latest"]
        return found.get(gpu.pk)

    @extend_schema_field(LatestSerializer(allow_null=True))
    def get_latest(self, gpu: Gpu) -> dict[str, Any] | None:
        """Return the newest sample; null for a card that never gave one."""
        latest, at = self._latest(gpu), self.context["now"]
        if latest is None:
            return None
        return {
            "at": latest.at,
            "age_seconds": round((at - latest.at).total_seconds(), 3),
            "is_fresh": is_latest_fresh(gpu, latest, at),
            "clock_event_reasons": latest.clock_event_reasons,
            "performance_state": latest.performance_state,
            **latest.values,
        }

    @extend_schema_field(serializers.ChoiceField(choices=Activity.choices))
    def get_activity(self, gpu: Gpu) -> str:
        """Return what the card does now."""
        return str(card_activity(gpu, self._latest(gpu), self.context["now"]))

    @extend_schema_field(AdviceSerializer)
    def get_advice(self, gpu: Gpu) -> dict[str, str]:
        """Return the state in words."""
        return gpu_advice(gpu.state, gpu.state_reason).as_text()


class GpuPlaceSerializer(serializers.ModelSerializer[Gpu]):
    """A server that a card was seen in."""

    server_name = serializers.CharField(source="server.name", read_only=True)

    class Meta:
        model = Gpu
        fields = ["id", "server", "server_name", "state", "first_seen_at", "last_seen_at", "removed_at"]
        read_only_fields = fields


class GpuDetailSerializer(GpuSerializer):
    """A card with everything that is known of it."""

    facts = serializers.DictField(read_only=True)
    health = serializers.DictField(read_only=True, help_text="Counters and flags of the slow tier.")
    health_advice = serializers.SerializerMethodField()
    unsupported = serializers.DictField(
        read_only=True, help_text="Readings that the card does not give, each with its reason."
    )
    processes = serializers.ListField(child=serializers.DictField(), read_only=True)
    history = serializers.SerializerMethodField()

    class Meta(GpuSerializer.Meta):
        fields = [
            *GpuSerializer.Meta.fields,
            "facts",
            "health",
            "health_advice",
            "unsupported",
            "processes",
            "history",
        ]
        read_only_fields = fields

    @extend_schema_field(AdviceSerializer(many=True))
    def get_health_advice(self, gpu: Gpu) -> list[dict[str, str]]:
        """Return what the counters and flags ask for; empty when all is well."""
        return [advice.as_text() for advice in health_advice(gpu.health)]

    @extend_schema_field(GpuPlaceSerializer(many=True))
    def get_history(self, gpu: Gpu) -> Any:
        """Return every server that a card of this UUID was seen in, newest first."""
        return GpuPlaceSerializer(gpu_history(uuid=gpu.uuid), many=True).data


class GpuReadingFilters(GpuFilters):
    """Filters of cards, those by readings too."""

    activity = filters.MultipleChoiceFilter(choices=Activity.choices, help_text="What the card does now: `idle`.")
    min_free_memory_bytes = filters.NumberFilter(
        min_value=0, max_value=2**63 - 1, help_text="Memory that nothing holds."
    )

    def select(self, activity: Any = (), min_free_memory_bytes: Any = None, **given: Any) -> QuerySet[Gpu]:
        """Return what the selectors find."""
        least = None if min_free_memory_bytes is None else float(min_free_memory_bytes)
        return narrow(gpu_list(**given), now=now(), activity=activity, min_free_memory_bytes=least)


class ForgetReasonSerializer(serializers.Serializer[Any]):
    """Why, for the record."""

    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class FleetSummarySerializer(serializers.Serializer[Any]):
    """The fleet in a few numbers; sums and means are over the cards that report."""

    gpus_known = serializers.IntegerField()
    gpus_reporting = serializers.IntegerField()
    gpus_busy = serializers.IntegerField()
    gpus_missing = serializers.IntegerField()
    by_activity = serializers.DictField(child=serializers.IntegerField())
    servers_by_state = serializers.DictField(child=serializers.IntegerField())
    utilization_percent = serializers.FloatField(allow_null=True)
    memory_used_bytes = serializers.FloatField(allow_null=True)
    memory_total_bytes = serializers.IntegerField(allow_null=True)
    power_watts = serializers.FloatField(allow_null=True)
    data_at = serializers.DateTimeField(allow_null=True)


@extend_schema_view(
    list=extend_schema(summary="List GPUs", responses={200: GpuSerializer(many=True)}),
    retrieve=extend_schema(summary="Show a GPU", responses={200: GpuDetailSerializer}),
)
class GpuViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Gpu]):
    """Cards and their MIG slices."""

    queryset = Gpu.objects.none()
    serializer_class = GpuSerializer
    lookup_value_regex = r"\d+"
    ordering = ("id",)
    filter_backends = (filters.DjangoFilterBackend,)
    filterset_class = GpuReadingFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "summary"), Capability.FLEET_VIEW),
        "forget": Capability.SERVERS_MANAGE,
    }

    def get_queryset(self) -> QuerySet[Gpu]:
        """Return cards; one that is named by its id may be forgotten, or of a retired server."""
        return Gpu.objects.select_related("server__agent") if self.detail else gpu_list()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone; they leave the large columns in the database."""
        return queryset if self.detail else with_process_count(super().filter_queryset(queryset))

    def _context(self, gpus: list[Gpu]) -> dict[str, Any]:
        latest = latest_for_gpus(gpu_ids=[gpu.pk for gpu in gpus])
        return {**self.get_serializer_context(), "latest": latest, "now": now()}

    def _detail(self, gpu: Gpu) -> Any:
        return GpuDetailSerializer(gpu, context=self._context([gpu])).data

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ARG002 (the framework's signature)
        """Return a page of cards with their newest readings; four queries however many there are."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(GpuSerializer(page, many=True, context=self._context(page)).data)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ARG002 (the framework's signature)
        """Return one card with everything that is known of it."""
        return Response(self._detail(self.get_object()))

    @extend_schema(
        summary="Forget a card that is gone for good",
        description="It must be missing, lost or unknown. Its samples stay; it comes back by itself when it is seen again.",
        request=ForgetReasonSerializer,
        responses={202: GpuDetailSerializer},
    )
    @action(detail=True, methods=["post"])
    def forget(self, request: Request, pk: str) -> Response:
        """Take the card off its server's list."""
        body = body_of(request, ForgetReasonSerializer)
        gpu_forget(gpu_id=int(pk), actor=Actor.from_request(request), **body)
        return Response(self._detail(self.get_object()), status=status.HTTP_202_ACCEPTED)

    @extend_schema(summary="The fleet in a few numbers", responses={200: FleetSummarySerializer}, filters=False)
    @action(detail=False, methods=["get"], pagination_class=None)
    def summary(self, request: Request) -> Response:  # noqa: ARG002 (the framework's signature)
        """Return how many cards there are, report, work and are missing, and what they add up to."""
        return Response(FleetSummarySerializer(asdict(fleet_summary(now=now()))).data)
