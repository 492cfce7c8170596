"""Go-live tests as lists, pages and programs read them."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Prefetch, QuerySet

from monitoring.golive_runs.models import GoLivePart, GoLiveRun


def run_list(
    *, subject_kind: str = "", subject_id: int | None = None, outcome: Sequence[str] = ()
) -> QuerySet[GoLiveRun]:
    """Return tests, the newest first, with their places but without plans."""
    parts = GoLivePart.objects.defer("plan", "bearer").order_by("pk")
    found = GoLiveRun.objects.prefetch_related(Prefetch("parts", parts)).order_by("-pk")
    if subject_kind:
        found = found.filter(subject_kind=subject_kind)
    if subject_id is not None:
        found = found.filter(subject_id=subject_id)
    return found.filter(outcome__in=outcome) if outcome else found


def shots_of(part: GoLivePart) -> list[list[Any]]:
    """Return every request that a place told of, in the order of telling."""
    return [shot for shots in part.pieces.order_by("sequence").values_list("shots", flat=True) for shot in shots]
