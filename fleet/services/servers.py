"""What people do with a server, and what becomes of one that falls silent."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.enums import GpuState, ServerState
from fleet.lifecycle import RETIRED_REASON
from fleet.models import Agent, Gpu, Server
from fleet.services.cleaning import clean_text
from fleet.services.judging import is_silent, open_faults, server_judge
from fleet.services.silence import servers_mark_silent
from fleet.services.telling import tell_server
from fleet.services.transitions import GpuChange, gpus_transition, server_transition
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound

__all__ = [
    "server_end",
    "server_locked",
    "server_maintenance_set",
    "server_remove",
    "server_update",
    "servers_mark_silent",
]

MAX_LABELS: Final = 32


def server_locked(server_id: int) -> Server:
    """Return the server's row with its agent, locked for the caller's transaction. Raises NotFound."""
    server = Server.objects.select_related("agent").select_for_update(of=("self",)).filter(pk=server_id).first()
    if server is None:
        raise NotFound(_("There is no such server."))
    return server


def _check_labels(labels: Mapping[str, Any]) -> dict[str, str]:
    if len(labels) > MAX_LABELS:
        raise InvalidInput(_("A server has %(limit)s labels at most.") % {"limit": MAX_LABELS}, field="labels")
    clean = {clean_text(str(key), 64): clean_text(str(value), 200) for key, value in labels.items()}
    if "" in clean:
        raise InvalidInput(_("A label needs a name."), field="labels")
    return clean


def server_update(
    *,
    server_id: int,
    actor: Actor,
    name: str | None = None,
    provider: str | None = None,
    region: str | None = None,
    labels: Mapping[str, Any] | None = None,
) -> Server:
    """Change what people call a server. Raises InvalidInput (name empty or taken), NotFound, or Conflict (retired)."""
    wanted: dict[str, Any] = {
        "name": clean_text(name, 100) if name is not None else None,
        "provider": clean_text(provider, 64) if provider is not None else None,
        "region": clean_text(region, 64) if region is not None else None,
        "labels": _check_labels(labels) if labels is not None else None,
    }
    if wanted["name"] == "":
        raise InvalidInput(_("Give the server a name."), field="name")
    try:
        with transaction.atomic():
            server = server_locked(server_id)
            changes = {
                key: value for key, value in wanted.items() if value is not None and value != getattr(server, key)
            }
            if not changes:
                return server
            before = {key: getattr(server, key) for key in changes}
            for key, value in changes.items():
                setattr(server, key, value)
            server.save(update_fields=list(changes))
            audit(actor=actor, action="server.update", target=server, before=before, after=changes)
            tell_server(server, gpus=list(server.gpus.all()))
    except IntegrityError:
        raise InvalidInput(_("There is a server of that name already."), code="name_taken", field="name") from None
    return server


def server_end(*, server_id: int, reason: str, actor: Actor, note: str = "") -> Server:
    """Retire a server: its agent's reports are refused from now on, its history stays. Doing it twice is no error."""
    with transaction.atomic():
        server = server_locked(server_id)
        if server.state == ServerState.RETIRED:
            return server
        at = now()
        before = {"state": str(server.state)}
        server_transition(server=server, to=ServerState.RETIRED, reason=reason, actor=actor, at=at)
        server.retired_at = at
        server.save(update_fields=["retired_at"])
        Agent.objects.filter(server=server, revoked_at=None).update(revoked_at=at)
        server.join_tokens.filter(used_at=None, revoked_at=None).update(revoked_at=at)
        gpus = list(Gpu.objects.filter(server=server))
        changes = [
            GpuChange(gpu, GpuState.UNKNOWN, RETIRED_REASON) for gpu in gpus if gpu.state_reason != RETIRED_REASON
        ]
        gpus_transition(changes, server_name=server.name, actor=actor, at=at, is_quiet=True)
        after = {"state": str(server.state)}
        audit(actor=actor, action="server.retire", target=server, before=before, after=after, reason=note or reason)
        tell_server(server, gpus=gpus, changed=gpus)
    return server


def server_remove(*, server_id: int, actor: Actor, reason: str = "") -> None:
    """Delete a retired server with its cards and faults for good. Raises NotFound, or Conflict while it is not retired."""
    with transaction.atomic():
        server = server_locked(server_id)
        if server.state != ServerState.RETIRED:
            raise Conflict(_("Retire the server first: removing deletes its history."), code="not_retired")
        audit(actor=actor, action="server.remove", target=server, before={"name": server.name}, reason=reason)
        server.delete()


def server_maintenance_set(*, server_id: int, is_on: bool, actor: Actor, reason: str = "") -> Server:
    """Put a server into maintenance or take it out; out of it, its last report and its silence decide what it is."""
    with transaction.atomic():
        server = server_locked(server_id)
        is_now = server.state == ServerState.MAINTENANCE
        if is_on == is_now:
            return server
        at = now()
        before = {"state": str(server.state)}
        gpus = list(server.gpus.all())
        if is_on:
            to = ServerState.MAINTENANCE
            server_transition(server=server, to=to, reason=clean_text(reason, 64), actor=actor, at=at)
        else:
            _leave_maintenance(server, gpus, actor, at)
        audit(
            actor=actor,
            action="server.maintenance",
            target=server,
            before=before,
            after={"state": str(server.state)},
            reason=reason,
        )
        tell_server(server, gpus=gpus)
    return server


def _leave_maintenance(server: Server, gpus: list[Gpu], actor: Actor, at: datetime) -> None:
    if is_silent(server, at):
        server_transition(server=server, to=ServerState.NOT_REPORTING, reason="agent_silent", actor=actor, at=at)
        return
    faults = open_faults(server_ids=[server.pk], at=at).get(server.pk, {})
    server_judge(server=server, gpus=gpus, faults=faults, actor=actor, at=at, is_released=True)
    server.save(update_fields=["gpu_health"])
