"""Idleness over the API: cards that had nothing to do, what that cost, and what could be saved."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.leasing.serializers import MoneySerializer
from monitoring.api.series import MomentField
from monitoring.waste.enums import Ground, Use
from monitoring.waste.money import Avoidable
from monitoring.waste.selectors import Waste, WasteRow, waste
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import InvalidInput
from panel.core.money import Money

LONGEST: Final = timedelta(days=92)
MOST_ROWS: Final = 500
_QUERY: Final = [
    OpenApiParameter("from", datetime, description="A day before `to` when left out; at most 92 days."),
    OpenApiParameter("to", datetime, description="Now when left out."),
    OpenApiParameter("limit", int, description=f"Rows, 1 to {MOST_ROWS}; 100 when left out. Sums are over all."),
]
_PLACES: Final = Decimal("0.000001")


class WasteQuerySerializer(serializers.Serializer[Any]):
    """Which time, and how many rows of it."""

    to = MomentField(required=False, source="end")
    limit = serializers.IntegerField(min_value=1, max_value=MOST_ROWS, default=100)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`, a word that Python keeps for itself."""
        return {"from": MomentField(required=False, source="start"), **super().get_fields()}


class SavingSerializer(serializers.Serializer[Any]):
    """What each further idle hour would save: empty when nothing, null when that is not known."""

    by_ending = MoneySerializer(many=True, allow_null=True)
    by_stopping = MoneySerializer(many=True, allow_null=True)


class WasteRowSerializer(serializers.Serializer[Any]):
    """A card. cost and avoidable are null when nobody told what its machine costs."""

    gpu = serializers.IntegerField()
    gpu_name = serializers.CharField()
    index = serializers.IntegerField(allow_null=True)
    server = serializers.IntegerField()
    server_name = serializers.CharField()
    lease = serializers.IntegerField(allow_null=True)
    use = serializers.ChoiceField(Use.choices, help_text="Over the last hour.")
    ground = serializers.ChoiceField(Ground.choices)
    ground_words = serializers.CharField()
    idle_since = serializers.DateTimeField(allow_null=True, help_text="Null when it works again, or cannot be told.")
    quiet_minutes = serializers.IntegerField(help_text="Within the time asked for.")
    evidence = serializers.DictField()
    cost = MoneySerializer(many=True, allow_null=True)
    card_hours = serializers.DecimalField(20, 6, allow_null=True)
    unknown_card_hours = serializers.DecimalField(20, 6, allow_null=True, help_text="Hours without a known price.")
    avoidable = serializers.ChoiceField(Avoidable.choices, allow_null=True)
    renews_at = serializers.DateTimeField(allow_null=True)
    saving_per_hour = SavingSerializer(allow_null=True)


class WasteSerializer(serializers.Serializer[Any]):
    """Sums are over all rows, however many were asked for."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    count = serializers.IntegerField()
    totals = MoneySerializer(many=True)
    avoidable = MoneySerializer(many=True)
    unknown_card_hours = serializers.DecimalField(20, 6)
    without_price = serializers.IntegerField(help_text="Cards whose machine has no lease here.")
    results = WasteRowSerializer(many=True)


class WasteView(APIView):
    """Cards that had nothing to do."""

    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    @extend_schema(
        summary="What idle cards cost",
        parameters=_QUERY,
        responses={200: WasteSerializer},
        tags=["waste"],
    )
    def get(self, request: Request) -> Response:
        """List cards with quiet intervals of ten minutes or more, the dearest first."""
        query = WasteQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        at = now()
        end = min(query.validated_data.get("end") or at, at)
        start = query.validated_data.get("start") or end - timedelta(days=1)
        if not timedelta(0) < end - start <= LONGEST:
            raise InvalidInput(_("Ask for a time that ends after it begins and is at most 92 days long."), field="from")
        return Response(WasteSerializer(_shown(waste(start=start, end=end, at=at), query.validated_data["limit"])).data)


def _shown(found: Waste, limit: int) -> dict[str, Any]:
    return {
        "start": found.start,
        "end": found.end,
        "count": len(found.rows),
        "totals": _amounts(found.totals),
        "avoidable": _amounts(found.avoidable),
        "unknown_card_hours": found.unknown_card_hours.quantize(_PLACES),
        "without_price": found.without_price,
        "results": [_row_shown(row) for row in found.rows[:limit]],
    }


def _row_shown(row: WasteRow) -> dict[str, Any]:
    use, cost = row.use, row.cost
    return {
        "gpu": row.gpu.pk,
        "gpu_name": row.gpu.name,
        "index": row.gpu.index,
        "server": row.gpu.server_id,
        "server_name": row.gpu.server.name,
        "lease": row.lease.pk if row.lease else None,
        "use": use.use if use else Use.UNKNOWN,
        "ground": use.ground if use else Ground.NO_READINGS,
        "ground_words": Ground(use.ground if use else Ground.NO_READINGS).label,
        "idle_since": row.idle_since,
        "quiet_minutes": row.quiet_minutes,
        "evidence": row.evidence,
        "cost": _amounts(cost.totals) if cost else None,
        "card_hours": cost.card_hours.quantize(_PLACES) if cost else None,
        "unknown_card_hours": cost.unknown_card_hours.quantize(_PLACES) if cost else None,
        "avoidable": row.avoidable,
        "renews_at": row.lease.renews_at if row.lease else None,
        "saving_per_hour": {
            "by_ending": _amounts(row.saving.by_ending),
            "by_stopping": _amounts(row.saving.by_stopping),
        }
        if row.saving
        else None,
    }


def _amounts(money: dict[str, Money] | None) -> list[Money] | None:
    return None if money is None else [each.rounded() for each in money.values()]
