"""What diagnoses register below and beside themselves when the app starts."""

from typing import Any

import msgspec

from fleet.assignments.jobs import register_arguments
from fleet.enums import JobKind
from fleet.models import Agent, Job
from monitoring.diagnosing.enums import ReportState
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import places_of, plan_of
from monitoring.diagnosing.telling import report_live
from monitoring.live.topics import Topic, register
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.models import User
from panel.core.errors import NotFound
from panel.core.live import LiveData


def register_all() -> None:
    """Register the arguments of jobs, and live topics (once, when the app starts)."""
    for kind in (JobKind.DIAGNOSE, JobKind.PROBE_ROUND):
        register_arguments(kind, plan_for_job)
    register(Topic("diagnosis", _may_view_one, report_snapshot))
    register(Topic("diagnoses", _may_view, reports_snapshot, has_id=False))


def plan_for_job(job: Job) -> dict[str, Any]:
    """Return a job's plan with what is secret in it; nothing when its report is over."""
    report = DiagnosisReport.objects.filter(pk=job.context.get("report"), state=ReportState.RUNNING).first()
    if report is None:
        return {}
    place = next((each for each in places_of(report) if each.key == job.context.get("place")), None)
    if place is None:
        return {}
    skew = Agent.objects.filter(server_id=job.server_id).values_list("clock_skew_seconds", flat=True).first()
    return {"plan": msgspec.to_builtins(plan_of(report, place, clock_skew_seconds=skew or 0.0))}


def _may_view(user: User, _identifier: int) -> bool:
    return has_capability(user.role, Capability.FLEET_VIEW)


def _may_view_one(user: User, identifier: int) -> bool:
    return _may_view(user, 0) and DiagnosisReport.objects.filter(pk=identifier).exists()


def report_snapshot(identifier: int) -> LiveData:
    """Return how far one diagnosis has come."""
    report = DiagnosisReport.objects.defer("found", "evidence").filter(pk=identifier).first()
    if report is None:
        raise NotFound("This diagnosis does not exist any more.")
    return {"diagnoses": {str(report.pk): report_live(report)}}


def reports_snapshot(_identifier: int) -> LiveData:
    """Return every diagnosis under way."""
    running = DiagnosisReport.objects.defer("found", "evidence").filter(state=ReportState.RUNNING)
    return {"diagnoses": {str(report.pk): report_live(report) for report in running}}
