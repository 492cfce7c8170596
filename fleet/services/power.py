"""Start, stop, reboot, save and end: asked for once, sent by the lease's next step, watched until the machine is so."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.enums import LeaseOrigin, OperationKind, OperationState, Wanted
from fleet.models import Lease, Operation
from fleet.providers.base import CanOrder, CanReboot, CanStop, HasSnapshots, Machine, MachineStatus, Provider
from fleet.providers.errors import AccessRefused, OutcomeUnknown, ProviderError, Refused
from fleet.providers.registry import provider_type
from fleet.reasons import REASON_WORDS, Reason
from fleet.services.leases import lease_locked, lease_observe
from fleet.services.operations import (
    POWER_DEADLINE,
    open_operations,
    operation_begin,
    operation_end,
    operation_known,
    operation_save,
    operation_start,
    step_set,
)
from fleet.services.telling_leases import tell_lease
from panel.accounts.audit import Actor
from panel.core.clock import now
from panel.core.errors import Conflict

SETTLE: Final = timedelta(seconds=10)  # a reboot shows "running" before, during and after
POWER: Final = frozenset({OperationKind.START, OperationKind.STOP, OperationKind.REBOOT, OperationKind.SNAPSHOT})
_ABILITY: Final[dict[OperationKind, type]] = {
    OperationKind.START: CanStop,
    OperationKind.STOP: CanStop,
    OperationKind.REBOOT: CanReboot,
    OperationKind.SNAPSHOT: HasSnapshots,
    OperationKind.TERMINATE: CanOrder,
}
_WANTED: Final = {OperationKind.START: Wanted.RUNNING, OperationKind.STOP: Wanted.STOPPED}


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation that was asked for, and whether this call began it."""

    operation: Operation
    is_new: bool


def lease_act(
    *, lease_id: int, kind: OperationKind, actor: Actor, key: str = "", reason: str = "", name: str = ""
) -> Asked:
    """Ask for a start, stop, reboot, snapshot (under `name`) or end. Nothing is sent yet. Raises Conflict or NotFound.

    Ending is asked for again and again until the provider confirms it; asking for it twice is no error.
    """
    request: dict[str, Any] = {"lease": lease_id, "reason": reason[:500], "name": name[:60]}
    known = operation_known(actor=actor, key=key, kind=kind, request=request)
    if known is not None:
        return Asked(known, is_new=False)
    with transaction.atomic():
        lease = lease_locked(lease_id)
        running = [each for each in open_operations(lease) if each.kind == kind]
        if running:
            return Asked(running[0], is_new=False)
        _check_possible(lease, kind)
        operation = operation_begin(
            kind=kind,
            actor=actor,
            account=lease.account,
            lease=lease,
            request=request,
            key=key,
            deadline=None if kind == OperationKind.TERMINATE else POWER_DEADLINE,
        )
        at = now()
        lease.wanted = Wanted.ENDED if kind == OperationKind.TERMINATE else _WANTED.get(kind, lease.wanted)
        if kind == OperationKind.TERMINATE:
            lease.termination_requested_at = lease.termination_requested_at or at
        lease.next_step_at = at
        lease.save(update_fields=["wanted", "termination_requested_at", "next_step_at"])
        tell_lease(lease)
    return Asked(operation, is_new=True)


def _check_possible(lease: Lease, kind: OperationKind) -> None:
    """Raise Conflict when this cannot be asked of this lease."""
    if lease.ended_at is not None:
        raise Conflict(_("This machine is gone already."), code="lease_ended")
    if lease.origin == LeaseOrigin.TYPED or lease.account is None:
        raise Conflict(
            _("This machine has no API: do it at the landlord's, then write it down here."), code="not_supported"
        )
    if not issubclass(provider_type(lease.account.kind), _ABILITY[kind]):
        words = REASON_WORDS[Reason.NOT_SUPPORTED]
        raise Conflict(f"{words.sentence} {words.next_step}", code="not_supported")
    if lease.wanted == Wanted.ENDED and kind != OperationKind.TERMINATE:
        raise Conflict(_("The machine's end was asked for."), code="ending")
    if not lease.external_id and kind != OperationKind.TERMINATE:
        raise Conflict(_("The machine is not there yet."), code="not_there_yet")


def power_step(lease: Lease, provider: Provider) -> bool:
    """Carry the oldest power operation of a lease one step on; return False when there is none."""
    with transaction.atomic():
        operations = [each for each in open_operations(lease) if each.kind in POWER]
    if not operations:
        return False
    operation = operations[0]
    if operation.sent_at is None:
        _send(operation, lease, provider)
    else:
        _watch(operation, lease, provider)
    return True


def _call(operation: Operation, lease: Lease, provider: Provider) -> dict[str, Any]:
    """Send the operation's call; return what it gave."""
    kind, external_id = operation.kind, lease.external_id
    if kind == OperationKind.SNAPSHOT and isinstance(provider, HasSnapshots):
        return {"snapshot": provider.snapshot(external_id, operation.request["name"] or f"{lease.name}-{operation.pk}")}
    if kind == OperationKind.REBOOT and isinstance(provider, CanReboot):
        provider.reboot(external_id)
    elif isinstance(provider, CanStop):
        (provider.start if kind == OperationKind.START else provider.stop)(external_id)
    return {}


def _send(operation: Operation, lease: Lease, provider: Provider) -> None:
    failure: ProviderError | None = None
    result: dict[str, Any] = {}
    try:
        result = _call(operation, lease, provider)
    except ProviderError as error:
        failure = error
    with transaction.atomic():
        row = Operation.objects.select_for_update().get(pk=operation.pk)
        if row.ended_at is not None:
            return
        at = now()
        row.attempts += 1
        operation_start(row, at)
        row.result = {**row.result, **result}
        if failure is None or isinstance(failure, OutcomeUnknown):
            # A lost answer is watched like a good one: start and stop show in the state, a reboot is not sent twice.
            row.sent_at = at
            step_set(row, "send", "done", at, failure.message if failure else "")
            step_set(row, row.steps[-1]["name"], "running", at)
        elif isinstance(failure, Refused | AccessRefused):
            _refused(row, failure, at)
        else:
            step_set(row, "send", "running", at, failure.message)
        operation_save(row)


def _refused(operation: Operation, failure: ProviderError, at: datetime) -> None:
    """End an operation that the provider refuses; what people want is again what it was."""
    step_set(operation, "send", "failed", at, failure.message)
    operation_end(operation, OperationState.FAILED, at, failure.reason, failure.message)
    undone = {OperationKind.START: Wanted.STOPPED, OperationKind.STOP: Wanted.RUNNING}.get(
        OperationKind(operation.kind)
    )
    if undone is not None:
        Lease.objects.filter(operations=operation).exclude(wanted=Wanted.ENDED).update(wanted=undone)


def _watch(operation: Operation, lease: Lease, provider: Provider) -> None:
    try:
        machine = provider.machine(lease.external_id)
        is_saved = operation.kind == OperationKind.SNAPSHOT and _is_saved(operation, provider)
    except ProviderError:
        return
    with transaction.atomic():
        lease_row = lease_locked(lease.pk)
        row = Operation.objects.select_for_update().get(pk=operation.pk)
        at = now()
        if row.ended_at is not None or machine is None:
            return
        lease_observe(lease_row, machine, at=at)
        if is_saved or _has_arrived(row, machine, at):
            operation_end(row, OperationState.SUCCEEDED, at)
            operation_save(row)


def _is_saved(operation: Operation, provider: Provider) -> bool:
    wanted = operation.result.get("snapshot")
    known = provider.snapshots() if isinstance(provider, HasSnapshots) else []
    return any(each.external_id == wanted and each.is_ready for each in known)


def _has_arrived(operation: Operation, machine: Machine, at: datetime) -> bool:
    if operation.kind == OperationKind.STOP:
        return machine.status == MachineStatus.STOPPED
    if operation.kind == OperationKind.START:
        return machine.status == MachineStatus.RUNNING
    if operation.kind == OperationKind.REBOOT:
        assert operation.sent_at is not None  # noqa: S101 (watched after it was sent)
        return machine.status == MachineStatus.RUNNING and at >= operation.sent_at + SETTLE
    return False
