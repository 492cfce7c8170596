"""How far each step of the store has come, one row for each kind and step."""

from typing import Final

from monitoring.models import SeriesProgress
from monitoring.store.tables import SubjectKind

CLOSED: Final = "hour"  # hours before are sealed and rolled up for good


def progress_of(kind: SubjectKind, step: str) -> int | None:
    """Return the time (Unix ms) before which the step is done; None when it never ran."""
    return SeriesProgress.objects.filter(kind=kind.code, step=step).values_list("until_ms", flat=True).first()


def progress_set(kind: SubjectKind, step: str, until_ms: int) -> None:
    """Say that everything before `until_ms` is done."""
    SeriesProgress.objects.bulk_create(
        [SeriesProgress(kind=kind.code, step=step, until_ms=until_ms)],
        update_conflicts=True,
        unique_fields=["kind", "step"],
        update_fields=["until_ms"],
    )
