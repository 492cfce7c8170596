"""Reads of reports."""

from collections.abc import Collection

from django.db.models import QuerySet

from monitoring.diagnosing.enums import ReportState
from monitoring.diagnosing.models import DiagnosisReport


def report_list(
    *,
    probe: int | None = None,
    endpoint: int | None = None,
    state: Collection[str] = (),
    verdict: Collection[str] = (),
    is_open: bool | None = None,
) -> QuerySet[DiagnosisReport]:
    """Return reports, the newest first."""
    reports = DiagnosisReport.objects.order_by("-pk")
    if probe is not None:
        reports = reports.filter(probe_id=probe)
    if endpoint is not None:
        reports = reports.filter(subject_kind="endpoint", subject_id=endpoint)
    if state:
        reports = reports.filter(state__in=state)
    if verdict:
        reports = reports.filter(verdict__in=verdict)
    if is_open is not None:
        running = ReportState.RUNNING
        reports = reports.filter(state=running) if is_open else reports.exclude(state=running)
    return reports
