"""Diagnoses under way: what their places say is collected, and when all is there, or time is up, they are judged and kept."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.agent.rounds.plan import Found
from fleet.enums import JobState
from fleet.models import Job
from fleet.services.jobs import job_cancel
from monitoring.diagnosing.enums import ReportFailure, ReportState
from monitoring.diagnosing.judging import judge
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import PANEL, Place, places_of
from monitoring.diagnosing.surroundings import surroundings
from monitoring.diagnosing.telling import tell_report
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.errors import Conflict, FleetdeckError, NotFound
from panel.core.events import event_write

# The panel's prober looks every two seconds; one that has not been heard for so long after the beginning does not run.
PROBER_SILENT: Final = timedelta(seconds=90)
KEPT_OF_A_SUBJECT: Final = 100
_OVER: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED})
log = structlog.get_logger(__name__)


def diagnoses_follow(*, at: datetime) -> int:
    """Bring every diagnosis under way up to date; returns how many ended."""
    running = DiagnosisReport.objects.filter(state=ReportState.RUNNING).values_list("pk", flat=True)
    return sum(diagnosis_follow(report_id=report_id, at=at) for report_id in list(running))


def diagnosis_follow(*, report_id: int, at: datetime) -> bool:
    """Take what its places have found; judge it when nothing more is to come. Returns whether it ended."""
    with transaction.atomic():
        report = _locked(report_id)
        if report.state != ReportState.RUNNING:
            return False
        places = places_of(report)
        jobs = {job.pk: job for job in Job.objects.filter(pk__in=[place.job for place in places if place.job])}
        open_places = [place for place in places if not _is_over(report, place, jobs, at)]
        for place in places:
            job = jobs.get(place.job or 0)
            if job is not None and job.state == JobState.SUCCEEDED and place.key not in report.found:
                report.found[place.key] = job.result
        if open_places and at < report.ends_at:
            _note_progress(report, places, jobs)
            return False
        _end(report, places, jobs, at)
    _call_off(report, open_places)
    return True


def _locked(report_id: int) -> DiagnosisReport:
    report = DiagnosisReport.objects.select_for_update().filter(pk=report_id).first()
    if report is None:
        raise NotFound(_("There is no such diagnosis."))
    return report


def _is_over(report: DiagnosisReport, place: Place, jobs: dict[int, Job], at: datetime) -> bool:
    if place.key in report.found:
        return True
    if place.key == PANEL:
        heard = report.heard_at or report.begin_at
        return at > heard + PROBER_SILENT
    job = jobs.get(place.job or 0)
    return job is None or job.state in _OVER


def _note_progress(report: DiagnosisReport, places: list[Place], jobs: dict[int, Job]) -> None:
    """Keep what came in, and how far the slowest place is."""
    before = report.progress
    steps = [_progress(report, place, jobs) for place in places]
    percent, step = min(steps, key=lambda each: each[0])
    report.progress = {**before, "percent": percent, "step": step}
    report.save(update_fields=["progress", "found"])
    if report.progress != before:
        tell_report(report)


def _progress(report: DiagnosisReport, place: Place, jobs: dict[int, Job]) -> tuple[int, str]:
    if place.key in report.found:
        return 100, "rounds"
    if place.key == PANEL:
        return int(report.progress.get("panel") or 0), "rounds"
    job = jobs.get(place.job or 0)
    if job is None or job.state in _OVER:
        return 100, "rounds"
    return int(job.progress.get("percent") or 0), str(job.progress.get("step") or "waiting")


def _end(report: DiagnosisReport, places: list[Place], jobs: dict[int, Job], at: datetime) -> None:
    roles = {place.role for place in places if place.key in report.found}
    if roles == {"outside", "host"}:
        _judge(report, places, at)
    else:
        _fail(report, _why(report, places, roles), _details(jobs))
    _close(report, at)


def _why(report: DiagnosisReport, places: list[Place], roles: Collection[str]) -> ReportFailure:
    if "host" not in roles:
        return ReportFailure.NO_HOST
    is_panel_alone = [place.key for place in places if place.role == "outside"] == [PANEL]
    return ReportFailure.NO_PROBER if is_panel_alone and report.heard_at is None else ReportFailure.NO_OUTSIDE


def _details(jobs: dict[int, Job]) -> str:
    told = [f"{job.reason}: {job.detail}".strip(": ") for job in jobs.values() if job.state == JobState.FAILED]
    return "; ".join(told)[:500]


def _judge(report: DiagnosisReport, places: list[Place], at: datetime) -> None:
    hosts = [place for place in places if place.role == "host"]
    report.evidence = surroundings(
        gpu_ids=report.context.get("gpu_ids") or [],
        server_ids=[place.server for place in hosts if place.server is not None],
        subject_kind=report.subject_kind,
        subject_id=report.subject_id,
        start=report.begin_at,
        end=min(at, report.begin_at + timedelta(seconds=report.slot_seconds * report.rounds)),
    ).as_json()
    try:
        found = judge(report)
    except ValueError as error:
        log.warning("diagnosis.not_judged", report=report.pk, error=str(error))
        _fail(report, ReportFailure.NOT_JUDGED, str(error)[:500])
        return
    report.state = ReportState.DONE
    report.diagnosis, report.verdict, report.level = found.as_json(), found.verdict.value, found.level.value


def _fail(report: DiagnosisReport, failure: ReportFailure, detail: str) -> None:
    report.state, report.failure, report.detail = ReportState.FAILED, failure, detail


def _close(report: DiagnosisReport, at: datetime) -> None:
    """Store an end; what is secret is not needed any more."""
    report.ended_at = at
    report.bearer = report.host_bearer = ""
    report.progress = {}
    report.save()
    event_write(
        kind=f"diagnosis.{report.state}",
        severity=Severity.INFO,
        subject_kind=report.subject_kind,
        subject_id=report.subject_id,
        subject_name=report.subject_name,
        data={"report": report.pk, "verdict": report.verdict, "level": report.level, "failure": report.failure},
    )
    tell_report(report)
    _forget_old(report)


def _forget_old(report: DiagnosisReport) -> None:
    same = DiagnosisReport.objects.filter(subject_kind=report.subject_kind, subject_id=report.subject_id)
    over = same.exclude(state=ReportState.RUNNING).order_by("-pk").values_list("pk", flat=True)[KEPT_OF_A_SUBJECT:]
    DiagnosisReport.objects.filter(pk__in=list(over)).delete()


def _call_off(report: DiagnosisReport, places: list[Place]) -> None:
    """Stop agents that still measure: nobody waits for them."""
    for place in places:
        if place.job is not None:
            try:
                job_cancel(job_id=place.job, actor=Actor.system("diagnosis"))
            except FleetdeckError as error:  # it ended by itself meanwhile
                log.debug("diagnosis.job_over", report=report.pk, job=place.job, error=error.message)


def diagnosis_cancel(*, report_id: int, actor: Actor) -> DiagnosisReport:
    """Call a diagnosis off; its places stop. One that is cancelled already is left so. Raises NotFound or Conflict (over)."""
    with transaction.atomic():
        report = _locked(report_id)
        if report.state == ReportState.CANCELLED:
            return report
        if report.state != ReportState.RUNNING:
            raise Conflict(_("This diagnosis is over."), code="over")
        report.state = ReportState.CANCELLED
        _close(report, now())
        audit(actor=actor, action="diagnosis.cancel", target=report, target_name=report.subject_name)
    _call_off(report, places_of(report))
    return report


def panel_found(*, report_id: int, found: Found | None, percent: int, at: datetime) -> bool:
    """Take what the panel's own prober has so far (found: when it is done); returns whether the report still wants it."""
    with transaction.atomic():
        report = _locked(report_id)
        if report.state != ReportState.RUNNING:
            return False
        report.heard_at = at
        report.progress = {**report.progress, "panel": percent}
        if found is not None:
            report.found[PANEL] = _plain(found)
        report.save(update_fields=["heard_at", "progress", "found"])
    return True


def _plain(found: Found) -> Any:
    return msgspec.to_builtins(found)
