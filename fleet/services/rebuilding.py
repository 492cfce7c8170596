"""Servers whose machine is gone and that are ordered again: they wait for another machine, or are again what they were."""

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.enums import DriverState, GpuHealth, GpuState, OperationKind, ServerState
from fleet.lifecycle import MACHINE_GONE_STATES, REBUILDING_REASON, REPLACED_REASON, RETIRED_REASON, SILENT_REASON
from fleet.models import Agent, Gpu, Lease, Server
from fleet.providers.registry import provider_type
from fleet.services.servers import server_end, server_locked
from fleet.services.telling import tell_server
from fleet.services.transitions import GpuChange, gpus_transition, server_transition
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict

_ACTOR = Actor.system("orders")


def server_rebuild(*, server: Server, actor: Actor) -> None:
    """Let a server whose machine is gone wait for another one, in the caller's transaction on its locked row.

    The cards of the machine before leave its list and stay as history. One that reports, or is waited for already, stays as
    it is. Raises Conflict when another server has its name by now.
    """
    if server.state not in MACHINE_GONE_STATES:
        return
    if Server.objects.filter(name__iexact=server.name, retired_at=None).exclude(pk=server.pk).exists():
        raise Conflict(
            _("Another server is called %(name)s by now. Rename that one first, or order under another name.")
            % {"name": server.name},
            code="name_taken",
        )
    at = now()
    server_transition(server=server, to=ServerState.PENDING, reason=REBUILDING_REASON, actor=actor, at=at)
    server.retired_at = server.facts_at = server.first_sample_at = server.driver_since = None
    server.driver_state, server.driver_detail, server.gpu_health = DriverState.UNKNOWN, "", GpuHealth.UNKNOWN
    server.save(
        update_fields=[
            *("retired_at", "facts_at", "first_sample_at"),
            *("driver_since", "driver_state", "driver_detail", "gpu_health"),
        ]
    )
    gpus = list(Gpu.objects.filter(server=server))
    before = [gpu for gpu in gpus if gpu.removed_at is None]
    changes = [GpuChange(gpu, GpuState.UNKNOWN, REPLACED_REASON) for gpu in before]
    gpus_transition(changes, server_name=server.name, actor=actor, at=at, is_quiet=True)
    _list(before, removed_at=at)
    tell_server(server, gpus=gpus, changed=before)


def _list(gpus: list[Gpu], *, removed_at: datetime | None) -> None:
    for gpu in gpus:
        gpu.removed_at = removed_at
    Gpu.objects.filter(pk__in=[gpu.pk for gpu in gpus]).update(removed_at=removed_at)


def server_order_failed(*, server_id: int, reason: str) -> None:
    """Undo what an order did to its server whose machine never came to be, in the caller's transaction.

    A server that was there before is again what it was, with the reason; one that the order made is deleted. One that
    waited to be joined before is not the order's; nor is one with another lease's past.
    """
    server = Server.objects.select_for_update().filter(pk=server_id, state=ServerState.PENDING).first()
    if server is None:
        return
    if server.state_reason == REBUILDING_REASON:
        _go_back(server, reason)
        return
    orders = server.operations.filter(kind=OperationKind.ORDER)
    is_its_own = orders.filter(request__server=None).exists() and server.leases.count() == 1
    if is_its_own and not Agent.objects.filter(server=server).exists():
        audit(actor=_ACTOR, action="server.remove", target=server, reason="its machine was not created")
        server.delete()


def _go_back(server: Server, reason: str) -> None:
    """Put a server that waits for another machine back: retired, or silent where its agent was never told to leave."""
    at, began_at = now(), server.state_changed_at
    is_agents = Agent.objects.filter(server=server, revoked_at=None).exists()
    to = ServerState.NOT_REPORTING if is_agents else ServerState.RETIRED
    server_transition(server=server, to=to, reason=reason, actor=_ACTOR, at=at)
    server.retired_at = at if to == ServerState.RETIRED else None
    server.save(update_fields=["retired_at"])
    server.join_tokens.filter(used_at=None, revoked_at=None, is_for_startup=True).update(revoked_at=at)
    gpus = list(Gpu.objects.filter(server=server))
    listed = [gpu for gpu in gpus if gpu.removed_at == began_at and gpu.state_reason == REPLACED_REASON]
    card_reason = RETIRED_REASON if to == ServerState.RETIRED else SILENT_REASON
    changes = [GpuChange(gpu, GpuState.UNKNOWN, card_reason) for gpu in listed]
    gpus_transition(changes, server_name=server.name, actor=_ACTOR, at=at, is_quiet=True)
    _list(listed, removed_at=None)
    tell_server(server, gpus=gpus, changed=listed)


def server_machine_gone(*, server_id: int, reason: str, is_ended: bool, note: str) -> None:
    """Say of a server that the machine of its lease is gone. is_ended: people ended it, so that it retires.

    One for which another machine is under way already waits for that one.
    """
    with transaction.atomic():
        server = server_locked(server_id)
        if Lease.objects.filter(server=server, ended_at=None).exists():
            return
        if server.state == ServerState.PENDING and server.state_reason == REBUILDING_REASON:
            _go_back(server, reason)
        elif is_ended:
            server_end(server_id=server_id, reason=reason, actor=Actor.system("leases"), note=note)


def server_placed(lease: Lease) -> None:
    """Say of a waiting server where its machine runs, in the caller's transaction; it may be another provider than before."""
    if lease.server_id is None or lease.account is None:
        return
    is_simulated = provider_type(lease.account.kind).is_simulated
    waiting = Server.objects.filter(pk=lease.server_id, state=ServerState.PENDING)
    waiting.update(provider=lease.account.kind, region=lease.region, is_simulated=is_simulated)
