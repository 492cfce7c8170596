"""Agents: who one is, what it should do, and how it leaves."""

from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.agent import wire
from fleet.assignments.jobs import arguments_of
from fleet.assignments.parts import parts_for
from fleet.enums import ServerState
from fleet.models import Agent, Job
from fleet.services.servers import server_end
from fleet.services.telling import tell_assignments
from panel.accounts.audit import Actor, audit
from panel.core import tokens
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotAuthenticated, NotFound

MIN_INTERVAL_SECONDS: Final = 1.0
MAX_INTERVAL_SECONDS: Final = 60.0
JOBS_TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """An agent that proved who it is. assignments_version changes when it should fetch its assignments."""

    agent_id: int
    server_id: int
    server_name: str
    server_state: ServerState
    sample_interval_seconds: float
    report_interval_seconds: float
    assignments_version: int


def agent_authenticate(*, token: str) -> AgentIdentity | None:
    """Return who presents this agent token; None when it is unknown, revoked, or its server is retired. One query."""
    prefix = tokens.parse(token, kind=tokens.AGENT_TOKEN)
    if prefix is None:
        return None
    agent = Agent.objects.select_related("server").filter(token_prefix=prefix, revoked_at=None).first()
    if agent is None or agent.server.state == ServerState.RETIRED or not tokens.matches(token, agent.token_hash):
        return None
    return AgentIdentity(
        agent_id=agent.pk,
        server_id=agent.server_id,
        server_name=agent.server.name,
        server_state=ServerState(agent.server.state),
        sample_interval_seconds=agent.sample_interval_seconds,
        report_interval_seconds=agent.report_interval_seconds,
        assignments_version=agent.assignments_version,
    )


def agent_identify(*, token: str) -> AgentIdentity:
    """Return who presents this agent token; see `agent_authenticate`. Raises NotAuthenticated."""
    identity = agent_authenticate(token=token)
    if identity is None:
        raise NotAuthenticated(
            _("The panel does not know this agent's token, or it was taken back. Join the server again."),
            code="token_unknown",
        )
    return identity


def assignments_for(*, identity: AgentIdentity) -> wire.Assignments:
    """Return what should be so on this agent's machine. One query, and those of the registered parts.

    The version is older than the jobs, never newer: an agent that is told too much asks once more.
    """
    return wire.Assignments(
        version=identity.assignments_version,
        sample_interval_seconds=identity.sample_interval_seconds,
        report_interval_seconds=identity.report_interval_seconds,
        jobs=[
            wire.JobOrder(job.pk, job.kind, job.time_limit_seconds, arguments_of(job))
            for job in Job.objects.filter(server_id=identity.server_id, ended_at=None).order_by("pk")[:JOBS_TOLD]
        ],
        **parts_for(identity.server_id),
    )


def agent_configure(
    *,
    agent_id: int,
    actor: Actor,
    sample_interval_seconds: float | None = None,
    report_interval_seconds: float | None = None,
) -> Agent:
    """Change how often an agent samples and reports (1 to 60 s). Raises NotFound or InvalidInput."""
    wanted = {"sample_interval_seconds": sample_interval_seconds, "report_interval_seconds": report_interval_seconds}
    for field, value in wanted.items():
        if value is not None and not MIN_INTERVAL_SECONDS <= value <= MAX_INTERVAL_SECONDS:
            raise InvalidInput(_("An interval is from 1 to 60 seconds."), field=field)
    with transaction.atomic():
        agent = Agent.objects.select_related("server").select_for_update(of=("self",)).filter(pk=agent_id).first()
        if agent is None:
            raise NotFound(_("There is no such agent."))
        changes = {name: value for name, value in wanted.items() if value is not None and value != getattr(agent, name)}
        if changes:
            before = {name: getattr(agent, name) for name in changes}
            for name, value in changes.items():
                setattr(agent, name, value)
            agent.assignments_version += 1
            agent.save(update_fields=[*changes, "assignments_version"])
            tell_assignments(agent.pk)
            name = agent.server.name
            audit(actor=actor, action="agent.configure", target=agent, target_name=name, before=before, after=changes)
    return agent


def agent_leave(*, agent_id: int, address: str | None) -> None:
    """The agent says goodbye: its token ends and its server is retired, its history kept. Raises NotFound."""
    with transaction.atomic():
        agent = Agent.objects.select_related("server").select_for_update(of=("self",)).filter(pk=agent_id).first()
        if agent is None:
            raise NotFound(_("There is no such agent."))
        actor = Actor(kind="agent", id=agent.pk, name=f"agent of {agent.server.name}", address=address)
        server_end(server_id=agent.server_id, reason="left", actor=actor)


def agent_revoke(*, agent: Agent, actor: Actor, reason: str = "") -> Agent:
    """End an agent's token: its reports are refused from now on. The server stays and falls silent until it is rejoined."""
    with transaction.atomic():
        agent = Agent.objects.select_related("server").select_for_update(of=("self",)).get(pk=agent.pk)
        if agent.revoked_at is None:
            agent.revoked_at = now()
            agent.save(update_fields=["revoked_at"])
            tell_assignments(agent.pk)
            audit(actor=actor, action="agent.revoke", target=agent, target_name=agent.server.name, reason=reason)
    return agent
