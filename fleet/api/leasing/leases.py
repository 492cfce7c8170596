"""Leases over the API: typed in, changed, started, stopped, ended; what they cost and what would have been cheaper."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.leasing.filters import LeaseFilters
from fleet.api.leasing.idempotency import IDEMPOTENCY_KEY, idempotency_key
from fleet.api.leasing.serializers import (
    BreakEvenSerializer,
    CostSerializer,
    LeaseSerializer,
    OperationSerializer,
    PartSerializer,
    joint_shown,
)
from fleet.api.servers import ReasonSerializer
from fleet.enums import OperationKind, PriceComponent, PriceUnit, TimeStep
from fleet.models import Lease, ProviderAccount
from fleet.providers.base import Billing
from fleet.selectors.costs import joint_total, lease_costs, month_start
from fleet.selectors.leasing import lease_break_even, lease_list
from fleet.services.contracts import PricePart, lease_attach, lease_close, lease_terms_update, lease_type_in
from fleet.services.power import lease_act
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import InvalidInput
from panel.core.money import Money

MAX_ID = 2**63 - 1


class TermsSerializer(serializers.Serializer[Any]):
    """The terms of a contract."""

    landlord = serializers.CharField(max_length=100, allow_blank=True, required=False)
    notes = serializers.CharField(max_length=5000, allow_blank=True, required=False)
    region = serializers.CharField(max_length=64, allow_blank=True, required=False)
    billing = serializers.ChoiceField(choices=Billing.choices, required=False)
    renews_at = serializers.DateTimeField(required=False, allow_null=True, help_text="The end of the paid term.")
    is_renewing = serializers.BooleanField(required=False)
    reminder_days = serializers.IntegerField(min_value=0, max_value=365, required=False)
    step_seconds = serializers.ChoiceField(
        choices=TimeStep.choices, required=False, help_text="A run counts in whole steps of so many seconds."
    )
    least_seconds = serializers.IntegerField(
        min_value=0, max_value=86_400, required=False, help_text="A run counts as at least so many seconds."
    )
    free_seconds = serializers.IntegerField(
        min_value=0, max_value=86_400, required=False, help_text="So many seconds of each run cost nothing."
    )
    prices = PartSerializer(many=True, required=False, help_text="A new price per component; others stay.")
    effective_from = serializers.DateTimeField(
        required=False, help_text="Since when the prices count; now when left out."
    )


class TypeInSerializer(TermsSerializer):
    """A contract for a machine that no API tells of."""

    name = serializers.CharField(max_length=200)
    billing = serializers.ChoiceField(choices=Billing.choices)
    started_at = serializers.DateTimeField(help_text="Since when it is paid.")
    account = serializers.IntegerField(min_value=1, max_value=MAX_ID, required=False)
    server = serializers.IntegerField(min_value=1, max_value=MAX_ID, required=False)
    gpu_model = serializers.CharField(max_length=64, allow_blank=True, required=False)
    gpu_count = serializers.IntegerField(min_value=1, max_value=64, required=False)
    effective_from = None  # type: ignore[assignment]  # prices of a new contract count from its start


class CloseSerializer(ReasonSerializer):
    """When it ended."""

    ended_at = serializers.DateTimeField()


class AttachSerializer(serializers.Serializer[Any]):
    """Whose server it pays for."""

    server = serializers.IntegerField(min_value=1, max_value=MAX_ID, allow_null=True)


class SnapshotSerializer(ReasonSerializer):
    """What the snapshot is called."""

    name = serializers.CharField(max_length=60, allow_blank=True, default="")


class RangeSerializer(serializers.Serializer[Any]):
    """From when to when."""

    start = serializers.DateTimeField(required=False, help_text="The beginning of this month when left out (UTC).")
    end = serializers.DateTimeField(required=False, help_text="Now when left out, and never later.")


def parts_of(body: list[dict[str, Any]]) -> list[PricePart]:
    """Return typed-in parts of a price."""
    return [
        PricePart(
            component=PriceComponent(part["component"]),
            price=Money(part["amount"], part["currency"]),
            unit=PriceUnit(part["unit"]),
            runs_while_stopped=part["runs_while_stopped"],
        )
        for part in body
    ]


@extend_schema_view(
    list=extend_schema(summary="List leases"),
    retrieve=extend_schema(summary="Show a lease"),
)
class LeaseViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Lease]):
    """What is billed."""

    queryset = Lease.objects.none()
    serializer_class = LeaseSerializer
    lookup_value_regex = r"\d+"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = LeaseFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "costs", "break_even"), Capability.FLEET_VIEW),
        **dict.fromkeys(
            ("create", "partial_update", "start", "stop", "reboot", "snapshot", "terminate", "close", "attach"),
            Capability.LEASES_MANAGE,
        ),
    }

    def get_queryset(self) -> QuerySet[Lease]:
        """Return every lease."""
        return lease_list()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset)

    def _answer(self, pk: int | str, code: int) -> Response:
        return Response(self.get_serializer(self.get_queryset().get(pk=pk)).data, status=code)

    @extend_schema(summary="Add a contract", request=TypeInSerializer, responses={201: LeaseSerializer})
    def create(self, request: Request) -> Response:
        """For a machine that no API tells of: a data centre's, or one's own."""
        body = body_of(request, TypeInSerializer)
        account_id = body.pop("account", None)
        account = ProviderAccount.objects.filter(pk=account_id, removed_at=None).first() if account_id else None
        if account_id and account is None:
            raise InvalidInput(_("There is no such provider account."), field="account")
        spec: dict[str, Any] = {name: body.pop(name) for name in ("gpu_model", "gpu_count") if name in body}
        lease = lease_type_in(
            prices=parts_of(body.pop("prices", [])),
            server_id=body.pop("server", None),
            billing=Billing(body.pop("billing")),
            account=account,
            spec=spec,
            actor=Actor.from_request(request),
            **body,
        )
        return self._answer(lease.pk, status.HTTP_201_CREATED)

    @extend_schema(summary="Change a contract's terms", request=TermsSerializer, responses={200: LeaseSerializer})
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change what stands in the body; a new price counts from its day on, history stays."""
        body = body_of(request, TermsSerializer)
        prices = parts_of(body.pop("prices", []))
        lease_terms_update(lease_id=int(pk), actor=Actor.from_request(request), prices=prices, **body)
        return self._answer(pk, status.HTTP_200_OK)

    def _act(self, request: Request, pk: str, kind: OperationKind, name: str = "") -> Response:
        reason = body_of(request, ReasonSerializer)["reason"]
        asked = lease_act(
            lease_id=int(pk),
            kind=kind,
            actor=Actor.from_request(request),
            key=idempotency_key(request),
            reason=reason,
            name=name,
        )
        return Response(OperationSerializer(asked.operation).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Start a machine",
        parameters=[IDEMPOTENCY_KEY],
        request=ReasonSerializer,
        responses={202: OperationSerializer},
    )
    @action(detail=True, methods=["post"])
    def start(self, request: Request, pk: str) -> Response:
        """Begin an operation that starts it; it costs its full price again."""
        return self._act(request, pk, OperationKind.START)

    @extend_schema(
        summary="Stop a machine",
        parameters=[IDEMPOTENCY_KEY],
        request=ReasonSerializer,
        responses={202: OperationSerializer},
    )
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str) -> Response:
        """Begin an operation that stops it, in the mode that saves most."""
        return self._act(request, pk, OperationKind.STOP)

    @extend_schema(
        summary="Restart a machine",
        parameters=[IDEMPOTENCY_KEY],
        request=ReasonSerializer,
        responses={202: OperationSerializer},
    )
    @action(detail=True, methods=["post"])
    def reboot(self, request: Request, pk: str) -> Response:
        """Begin an operation that restarts it."""
        return self._act(request, pk, OperationKind.REBOOT)

    @extend_schema(
        summary="Save a machine's disk",
        parameters=[IDEMPOTENCY_KEY],
        request=SnapshotSerializer,
        responses={202: OperationSerializer},
    )
    @action(detail=True, methods=["post"])
    def snapshot(self, request: Request, pk: str) -> Response:
        """Begin an operation that saves it, where the provider can."""
        return self._act(request, pk, OperationKind.SNAPSHOT, body_of(request, SnapshotSerializer)["name"])

    @extend_schema(
        summary="End a machine for good",
        parameters=[IDEMPOTENCY_KEY],
        request=ReasonSerializer,
        responses={202: OperationSerializer},
    )
    @action(detail=True, methods=["post"])
    def terminate(self, request: Request, pk: str) -> Response:
        """Begin an operation that ends it; it is asked for until the provider confirms it, and billed until then."""
        return self._act(request, pk, OperationKind.TERMINATE)

    @extend_schema(summary="Close a typed-in contract", request=CloseSerializer, responses={200: LeaseSerializer})
    @action(detail=True, methods=["post"])
    def close(self, request: Request, pk: str) -> Response:
        """Write down when it ended."""
        body = body_of(request, CloseSerializer)
        lease_close(
            lease_id=int(pk), ended_at=body["ended_at"], actor=Actor.from_request(request), reason=body["reason"]
        )
        return self._answer(pk, status.HTTP_200_OK)

    @extend_schema(summary="Attach a lease to a server", request=AttachSerializer, responses={200: LeaseSerializer})
    @action(detail=True, methods=["post"])
    def attach(self, request: Request, pk: str) -> Response:
        """Say which server it pays for; null unties it."""
        server_id = body_of(request, AttachSerializer)["server"]
        lease_attach(lease_id=int(pk), server_id=server_id, actor=Actor.from_request(request))
        return self._answer(pk, status.HTTP_200_OK)

    @extend_schema(
        summary="What a lease cost", parameters=[RangeSerializer], responses={200: CostSerializer}, filters=False
    )
    @action(detail=True, methods=["get"])
    def costs(self, request: Request, pk: str) -> Response:
        """Add up billed intervals times the prices in force, each currency by itself."""
        lease = self.get_object()
        query = RangeSerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        at = now()
        start = query.validated_data.get("start") or month_start(at)
        end = min(query.validated_data.get("end") or at, at)
        if start >= end:
            raise InvalidInput(_("The range ends before it begins."), field="start")
        cost = lease_costs(lease_ids=[lease.pk], start=start, end=end)[int(pk)]
        answer = {
            "start": start,
            "end": end,
            "totals": [money.rounded() for money in cost.totals.values()],
            "joint": joint_shown(joint_total(cost.totals, at=end)),
            "hours": round(cost.hours, 6),
            "unknown_hours": round(cost.unknown_hours, 6),
        }
        return Response(CostSerializer(answer).data)

    @extend_schema(
        summary="Hourly, monthly or spot: what would have been cheaper",
        responses={200: BreakEvenSerializer},
        filters=False,
    )
    @action(detail=True, methods=["get"], url_path="break-even")
    def break_even(self, _request: Request, pk: str) -> Response:  # noqa: ARG002 (get_object reads it)
        """Compare by the hours billed in the last 30 days. Refused (400) where no price can be compared."""
        found = lease_break_even(self.get_object(), at=now())
        if found is None:
            raise InvalidInput(_("Neither this lease nor an offer of the same GPUs has a price to compare."))
        rounded = {
            "used_hours": round(found.used_hours, 6),
            "break_even_hours": round(found.break_even_hours, 6) if found.break_even_hours is not None else None,
            "choices": [{"billing": each.billing, "cost": each.cost.rounded()} for each in found.choices],
            "saving": found.saving.rounded() if found.saving else None,
        }
        return Response(BreakEvenSerializer(rounded).data)
