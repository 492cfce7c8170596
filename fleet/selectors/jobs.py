"""Reads of jobs, and of acceptance checks with their reports."""

from collections.abc import Collection

import msgspec
from django.db.models import QuerySet

from fleet.agent.acceptance.found import Found
from fleet.enums import JobKind, JobState
from fleet.leasing.acceptance import Report, judge
from fleet.leasing.acceptance_lines import Ordered, Wishes
from fleet.models import Job


def job_list(
    *, server: int | None = None, kind: Collection[str] = (), state: Collection[str] = (), is_open: bool | None = None
) -> QuerySet[Job]:
    """Return jobs with their servers, without order."""
    jobs = Job.objects.select_related("server")
    if server is not None:
        jobs = jobs.filter(server_id=server)
    if kind:
        jobs = jobs.filter(kind__in=kind)
    if state:
        jobs = jobs.filter(state__in=state)
    if is_open is not None:
        jobs = jobs.filter(ended_at=None) if is_open else jobs.exclude(ended_at=None)
    return jobs


def acceptance_list(*, server: int) -> QuerySet[Job]:
    """Return a server's acceptance checks, the newest first."""
    return job_list(server=server, kind=[JobKind.ACCEPTANCE]).order_by("-pk")


def acceptance_wishes(job: Job) -> Wishes:
    """Return what was expected when a check was begun."""
    typed, lease = (msgspec.convert(job.context.get(name) or {}, Ordered) for name in ("typed", "lease"))
    return Wishes(typed, lease)


def acceptance_found(job: Job) -> Found | None:
    """Return what a check found, None unless it succeeded."""
    return msgspec.convert(job.result, Found) if job.state == JobState.SUCCEEDED else None


def acceptance_report(job: Job) -> Report | None:
    """Return the report of a check, None unless it succeeded."""
    found = acceptance_found(job)
    return judge(acceptance_wishes(job), found) if found is not None else None
