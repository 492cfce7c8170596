"""One-shot commands for agents: asked, claimed once, reported on, cancelled, given up."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext as _

from fleet.agent import wire
from fleet.enums import JobKind, JobState, ServerState
from fleet.lifecycle import JOB_TRANSITIONS
from fleet.models import Agent, Job, Server
from fleet.services.agents import AgentIdentity
from fleet.services.cleaning import clean_json, clean_text
from fleet.services.job_kinds import KINDS
from fleet.services.telling import tell_assignments, tell_job
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.errors import Conflict, InvalidInput, NotFound, Stale
from panel.core.events import event_write

# An agent that does not come for its job within this time is not waited for any longer.
BEGIN_WITHIN: Final = timedelta(minutes=15)
# How long after its deadline the outcome of a job that was begun is still expected: networks come back.
RESULT_WITHIN: Final = timedelta(minutes=15)
ARGUMENTS_BYTES: Final = 4_096
KEPT_OF_A_KIND: Final = 50
_STOPPED: Final = frozenset({JobState.CANCELLED, JobState.EXPIRED})


def job_create(
    *, server_id: int, kind: JobKind, actor: Actor, arguments: Mapping[str, Any], context: Mapping[str, Any]
) -> Job:
    """Ask a server's agent for something once; it hears of it at once. See Job for arguments and context.

    Raises NotFound, InvalidInput (too large), or Conflict: retired, without an agent, or one of the kind is under way.
    """
    if len(json.dumps(arguments)) > ARGUMENTS_BYTES:
        raise InvalidInput(_("That is more than an agent is given for a job."))
    at = now()
    try:
        with transaction.atomic():
            server = _server_with_agent(server_id)
            job = Job.objects.create(
                server=server,
                kind=kind,
                arguments=dict(arguments),
                context=dict(context),
                time_limit_seconds=KINDS[kind].time_limit_seconds,
                actor_kind=actor.kind,
                actor_id=actor.id,
                actor_name=actor.name[:200],
                created_at=at,
                expires_at=at + BEGIN_WITHIN,
            )
            _forget_old(server_id, kind)
            audit(
                actor=actor, action="job.create", target=job, target_name=server.name, after={"kind": kind, **arguments}
            )
            _tell_agent(server_id)
            tell_job(job)
    except IntegrityError:
        raise Conflict(_("One is under way on this server. Wait for it, or cancel it."), code="in_progress") from None
    return job


def _server_with_agent(server_id: int) -> Server:
    server = Server.objects.select_for_update().filter(pk=server_id).first()
    if server is None:
        raise NotFound(_("There is no such server."))
    if server.state == ServerState.RETIRED or not Agent.objects.filter(server=server, revoked_at=None).exists():
        raise Conflict(_("This server has no agent that could do it. Join it again first."), code="no_agent")
    return server


def _forget_old(server_id: int, kind: JobKind) -> None:
    """Keep a server's newest jobs of a kind."""
    over = Job.objects.filter(server_id=server_id, kind=kind).exclude(ended_at=None)
    Job.objects.filter(pk__in=list(over.order_by("-pk").values_list("pk", flat=True)[KEPT_OF_A_KIND:])).delete()


def _tell_agent(server_id: int) -> None:
    """Have the server's agent fetch its assignments once this is committed."""
    Agent.objects.filter(server_id=server_id).update(assignments_version=F("assignments_version") + 1)
    for agent_id in Agent.objects.filter(server_id=server_id).values_list("pk", flat=True):
        tell_assignments(agent_id)


def _locked(job_id: int, **conditions: Any) -> Job:
    """Return the job, locked for the caller's transaction. Raises NotFound."""
    job = Job.objects.select_related("server").select_for_update(of=("self",)).filter(pk=job_id, **conditions).first()
    if job is None:
        raise NotFound(_("There is no such job."))
    return job


def job_transition(job: Job, to: JobState, *, at: datetime, reason: str = "", detail: str = "", **fields: Any) -> None:
    """Change a job's state with what belongs to it, in the caller's transaction. Raises Conflict (not allowed) or Stale.

    fields: other columns that change along.
    """
    before = JobState(job.state)
    if to not in JOB_TRANSITIONS[before]:
        raise Conflict(
            _("This job is “%(before)s” and cannot become “%(to)s”.") % {"before": before.label, "to": to.label},
            code="transition_refused",
        )
    is_over = to not in {JobState.CLAIMED, JobState.RUNNING}
    changes = {
        **fields,
        "state": to,
        "reason": clean_text(reason, 32),
        "detail": clean_text(detail, 500),
        "ended_at": at if is_over else None,
    }
    if Job.objects.filter(pk=job.pk, state=before).update(**changes) != 1:
        raise Stale(_("Somebody else changed this first. Look at it again and repeat."))
    for name, value in changes.items():
        setattr(job, name, value)
    if is_over:
        _write_end(job)
    if to in _STOPPED:
        _tell_agent(job.server_id)
    tell_job(job)


def _write_end(job: Job) -> None:
    event_write(
        kind="job.ended",
        severity=Severity.WARNING if job.state in {JobState.FAILED, JobState.EXPIRED} else Severity.INFO,
        subject_kind="server",
        subject_id=job.server_id,
        subject_name=job.server.name,
        server_id=job.server_id,
        data={"job_id": job.pk, "kind": str(job.kind), "state": str(job.state), "reason": job.reason},
    )


def job_cancel(*, job_id: int, actor: Actor) -> Job:
    """Call a job off; its agent stops it. One that is cancelled already is left so. Raises NotFound or Conflict (over)."""
    with transaction.atomic():
        job = _locked(job_id)
        if job.state != JobState.CANCELLED:
            job_transition(job, JobState.CANCELLED, at=now())
            audit(actor=actor, action="job.cancel", target=job, target_name=job.server.name, after={"kind": job.kind})
    return job


def job_report(*, identity: AgentIdentity, job_id: int, report: wire.JobReport) -> wire.JobAnswer:
    """Take what an agent says of one of its own jobs; saying it again changes nothing.

    Raises NotFound (another's too), InvalidInput for a result that is none, or Conflict.
    """
    try:
        run_id = UUID(report.run_id)
    except ValueError:
        raise InvalidInput(_("`run_id` is a UUID.")) from None
    to = JobState(report.state)
    at = now()
    with transaction.atomic():
        job = _locked(job_id, server_id=identity.server_id)
        if job.state == JobState.PENDING and job.expires_at <= at:
            job_transition(job, JobState.EXPIRED, at=at)
        elif job.run_id not in {None, run_id}:
            # The process that claimed it is gone, or it would still speak.
            if job.ended_at is None:
                job_transition(job, JobState.FAILED, at=at, reason="interrupted")
        elif to == job.state == JobState.RUNNING:
            _note_progress(job, report)
        elif to in JOB_TRANSITIONS[JobState(job.state)]:
            fields = _reported(job, run_id, report, at)
            job_transition(job, to, at=at, reason=report.reason, detail=report.detail, **fields)
        return wire.JobAnswer(str(job.state))


def _result(job: Job, report: wire.JobReport) -> dict[str, Any]:
    """Return the result in the shape of the job's kind, fit for the database. Raises InvalidInput."""
    try:
        found = msgspec.convert(report.result, type=KINDS[JobKind(job.kind)].result)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(_("The result cannot be read: %(error)s") % {"error": error}) from None
    cleaned: dict[str, Any] = clean_json(msgspec.to_builtins(found))
    return cleaned


def _progress(report: wire.JobReport) -> dict[str, Any]:
    return {"percent": report.percent, "step": clean_text(report.step, 32)}


def _note_progress(job: Job, report: wire.JobReport) -> None:
    progress = _progress(report)
    if progress != job.progress:
        job.progress = progress
        job.save(update_fields=["progress"])
        tell_job(job)


def _reported(job: Job, run_id: UUID, report: wire.JobReport, at: datetime) -> dict[str, Any]:
    """Return the columns that a report changes beside the state."""
    fields: dict[str, Any] = {"run_id": run_id}
    if report.state == "claimed":
        limit = timedelta(seconds=job.time_limit_seconds)
        return {**fields, "claimed_at": at, "expires_at": at + limit + RESULT_WITHIN}
    if report.state == "running":
        return {**fields, "progress": _progress(report)}
    return {**fields, "result": _result(job, report) if report.state == "succeeded" else {}}


def jobs_expire(*, at: datetime) -> int:
    """Give up on jobs that nobody began or whose outcome never came; returns how many."""
    count = 0
    for job_id in Job.objects.filter(ended_at=None, expires_at__lte=at).values_list("pk", flat=True):
        with transaction.atomic():
            job = _locked(job_id)
            if job.ended_at is None and job.expires_at <= at:
                reason = "not_begun" if job.state == JobState.PENDING else "no_result"
                job_transition(job, JobState.EXPIRED, at=at, reason=reason)
                count += 1
    return count
