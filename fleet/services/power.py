"""Start, stop, reboot, save and end: asked for once, sent by the lease's next step, watched until the machine is so."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.enums import LeaseOrigin, OperationKind, OperationState, Wanted
from fleet.models import Lease, Operation
from fleet.providers.base import (
    CanOrder,
    CanReboot,
    CanStop,
    HasSnapshots,
    Machine,
    MachineStatus,
    Provider,
    Snapshot,
)
from fleet.providers.errors import AccessRefused, ProviderError, Refused
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
LOOK_FOR: Final = timedelta(minutes=2)  # how long a call without an answer is looked for before anything else is done
CUT_AT: Final = 30  # some providers cut the names of snapshots, none before here
CLOCKS_DIFFER: Final = timedelta(minutes=1)
POWER: Final = frozenset({OperationKind.START, OperationKind.STOP, OperationKind.REBOOT, OperationKind.SNAPSHOT})
_ABILITY: Final[dict[OperationKind, type]] = {
    OperationKind.START: CanStop,
    OperationKind.STOP: CanStop,
    OperationKind.REBOOT: CanReboot,
    OperationKind.SNAPSHOT: HasSnapshots,
    OperationKind.TERMINATE: CanOrder,
}
# What a machine is while a call has not been done; one that was lost may then be sent again.
_BEFORE: Final = {OperationKind.START: MachineStatus.STOPPED, OperationKind.STOP: MachineStatus.RUNNING}
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
        if (marked := _mark_sent(operation)) is not None:
            _send(marked, lease, provider)
    else:
        _watch(operation, lease, provider)
    return True


def _mark_sent(operation: Operation) -> Operation | None:
    """Write down that the call is sent, before it is: a crash after it must not send it again. None when it was already."""
    with transaction.atomic():
        row = Operation.objects.select_for_update().get(pk=operation.pk)
        if row.ended_at is not None or row.sent_at is not None:
            return None
        at = now()
        row.sent_at, row.attempts = at, row.attempts + 1
        operation_start(row, at)
        step_set(row, "send", "running", at)
        operation_save(row)
    return row


def is_answered(operation: Operation) -> bool:
    """Say whether the provider took the call; sent and not answered means that nobody knows whether it did."""
    return any(step["name"] == "send" and step["state"] == "done" for step in operation.steps)


def snapshot_name(operation: Operation, lease: Lease) -> str:
    """Return the name under which a snapshot is saved, and found again."""
    return str(operation.request["name"] or f"{lease.name}-{operation.pk}")


def _call(operation: Operation, lease: Lease, provider: Provider) -> dict[str, Any]:
    """Send the operation's call; return what it gave."""
    kind, external_id = operation.kind, lease.external_id
    if kind == OperationKind.SNAPSHOT and isinstance(provider, HasSnapshots):
        return {"snapshot": provider.snapshot(external_id, snapshot_name(operation, lease))}
    if kind == OperationKind.REBOOT and isinstance(provider, CanReboot):
        provider.reboot(external_id)
    elif isinstance(provider, CanStop):
        (provider.start if kind == OperationKind.START else provider.stop)(external_id)
    return {}


def _send(operation: Operation, lease: Lease, provider: Provider) -> None:
    """Send a call that is written down as sent, and apply its answer; without one it stays unanswered."""
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
        row.result = {**row.result, **result}
        if failure is None:
            step_set(row, "send", "done", at)
            step_set(row, row.steps[-1]["name"], "running", at)
        elif isinstance(failure, Refused | AccessRefused):
            _refused(row, failure, at)
        else:
            step_set(row, "send", "running", at, failure.message)
            if failure.is_definite:
                row.sent_at = None  # nothing was done, so the next step sends it
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
    """Look what became of a call that was sent."""
    try:
        machine = provider.machine(lease.external_id)
        saved = _saved(operation, lease, provider) if operation.kind == OperationKind.SNAPSHOT else None
    except ProviderError:
        return
    with transaction.atomic():
        lease_row = lease_locked(lease.pk)
        row = Operation.objects.select_for_update().get(pk=operation.pk)
        at = now()
        if row.ended_at is not None or row.sent_at is None or machine is None:
            return
        lease_observe(lease_row, machine, at=at)
        if saved is not None:
            row.result = {**row.result, "snapshot": saved.external_id}
        if (saved is not None and saved.is_ready) or _has_arrived(row, lease_row, machine, at):
            operation_end(row, OperationState.SUCCEEDED, at)
        elif saved is not None:
            step_set(row, "send", "done", at)
        elif not is_answered(row):
            _settle_unanswered(row, machine, at)
        operation_save(row)


def _settle_unanswered(operation: Operation, machine: Machine, at: datetime) -> None:
    """Decide about a call that nobody answered and that the machine does not show.

    Start and stop may be sent again once the machine is seen to be as before. A reboot is not: one that worked would be
    done twice; nor is a snapshot, which is looked for by its name until the operation's time is over.
    """
    assert operation.sent_at is not None  # noqa: S101 (asked by the caller)
    if at < operation.sent_at + LOOK_FOR:
        return
    if machine.status == _BEFORE.get(OperationKind(operation.kind)):
        operation.sent_at = None
    elif operation.kind == OperationKind.REBOOT:
        operation_end(operation, OperationState.FAILED, at, Reason.OUTCOME_UNKNOWN)


def _saved(operation: Operation, lease: Lease, provider: Provider) -> Snapshot | None:
    """Return the operation's snapshot as the provider shows it: by its id, without an answer by its name and time."""
    known = provider.snapshots() if isinstance(provider, HasSnapshots) else []
    if wanted := operation.result.get("snapshot"):
        return next((each for each in known if each.external_id == wanted), None)
    name, sent_at = snapshot_name(operation, lease), operation.sent_at
    assert sent_at is not None  # noqa: S101 (watched after it was sent)
    named = [each for each in known if each.name == name or (len(each.name) >= CUT_AT and name.startswith(each.name))]
    new = [each for each in named if each.created_at is not None and each.created_at >= sent_at - CLOCKS_DIFFER]
    if new:
        return min(new, key=lambda each: each.created_at or sent_at)
    return named[0] if len(named) == 1 and named[0].created_at is None else None


def _has_arrived(operation: Operation, lease: Lease, machine: Machine, at: datetime) -> bool:
    if operation.kind == OperationKind.STOP:
        return machine.status == MachineStatus.STOPPED
    if operation.kind == OperationKind.START:
        return machine.status == MachineStatus.RUNNING
    if operation.kind == OperationKind.REBOOT:
        assert operation.sent_at is not None  # noqa: S101 (watched after it was sent)
        if machine.status != MachineStatus.RUNNING or at < operation.sent_at + SETTLE:
            return False
        return is_answered(operation) or _was_booted_since(lease, operation.sent_at)
    return False


def _was_booted_since(lease: Lease, since: datetime) -> bool:
    """Say whether the machine's agent has told of a start of the machine after a time."""
    booted_ms = lease.server.facts.get("booted_at_ms") if lease.server is not None else None
    return isinstance(booted_ms, int) and booted_ms >= since.timestamp() * 1000
