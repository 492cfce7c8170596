"""Operations: begun once for one key, carried along as their lease moves, ended with a reason."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.enums import LeaseState, OperationKind, OperationState
from fleet.models import Lease, Operation, ProviderAccount
from fleet.reasons import Reason
from fleet.services.cleaning import clean_text
from fleet.services.telling_leases import tell_operation
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.errors import Conflict
from panel.core.events import event_write

STEPS: Final[dict[OperationKind, tuple[str, ...]]] = {
    OperationKind.ORDER: ("create", "boot", "join"),
    OperationKind.START: ("send", "running"),
    OperationKind.STOP: ("send", "stopped"),
    OperationKind.REBOOT: ("send", "running"),
    OperationKind.TERMINATE: ("send", "gone"),
    OperationKind.SNAPSHOT: ("send", "saved"),
}
_ACTIONS: Final[dict[OperationKind, str]] = {
    OperationKind.ORDER: "lease.order",
    OperationKind.START: "lease.start",
    OperationKind.STOP: "lease.stop",
    OperationKind.REBOOT: "lease.reboot",
    OperationKind.TERMINATE: "lease.terminate",
    OperationKind.SNAPSHOT: "lease.snapshot",
}
POWER_DEADLINE: Final = timedelta(minutes=15)
JOIN_DEADLINE: Final = timedelta(minutes=15)


def operation_known(*, actor: Actor, key: str, kind: OperationKind, request: dict[str, Any]) -> Operation | None:
    """Return the operation that this actor began with this key. Raises Conflict when it asked for something else."""
    if not key:
        return None
    known = Operation.objects.filter(actor_kind=actor.kind, actor_id=actor.id, idempotency_key=key).first()
    if known is not None and (known.kind != kind or known.request != request):
        raise Conflict(
            _("This idempotency key was used for another request. Use a fresh one."), code="idempotency_key_reused"
        )
    return known


def operation_begin(
    *,
    kind: OperationKind,
    actor: Actor,
    account: ProviderAccount | None,
    lease: Lease,
    request: dict[str, Any],
    key: str = "",
    deadline: timedelta | None = POWER_DEADLINE,
    skipped: tuple[str, ...] = (),
) -> Operation:
    """Write an operation down with its steps waiting, in the caller's transaction.

    Raises Conflict when the same key is begun by another request at this very moment.
    """
    at = now()
    steps = [
        {"name": name, "state": "waiting", "started_at": None, "ended_at": None, "detail": ""}
        for name in STEPS[kind]
        if name not in skipped
    ]
    try:
        with transaction.atomic():
            operation = Operation.objects.create(
                kind=kind,
                account=account,
                lease=lease,
                server_id=lease.server_id,
                request=request,
                steps=steps,
                actor_kind=actor.kind,
                actor_id=actor.id,
                actor_name=actor.name[:200],
                idempotency_key=key[:128],
                created_at=at,
                deadline_at=at + deadline if deadline is not None else None,
            )
    except IntegrityError:
        raise Conflict(_("The same request is on its way already."), code="in_progress") from None
    audit(actor=actor, action=_ACTIONS[kind], target=lease, after={"operation": operation.pk, **request})
    tell_operation(operation)
    return operation


def open_operations(lease: Lease) -> list[Operation]:
    """Return the lease's operations that are not over, locked, oldest first."""
    rows = Operation.objects.select_for_update().filter(lease=lease, ended_at=None)
    return list(rows.order_by("pk"))


def step_set(operation: Operation, name: str, state: str, at: datetime, detail: str = "") -> None:
    """Put one step into a state: waiting, running, done or failed; times follow."""
    for step in operation.steps:
        if step["name"] != name or (step["state"], step["detail"]) == (state, detail):
            continue
        step["state"], step["detail"] = state, clean_text(detail, 300)
        if state != "waiting" and step["started_at"] is None:
            step["started_at"] = at.isoformat()
        step["ended_at"] = at.isoformat() if state in {"done", "failed"} else None


def operation_start(operation: Operation, at: datetime) -> None:
    """Say that an operation is on its way."""
    operation.state = OperationState.RUNNING
    operation.started_at = operation.started_at or at


def operation_end(
    operation: Operation, state: OperationState, at: datetime, reason: Reason | str = "", detail: str = ""
) -> None:
    """End an operation; a step that was on its way shares its fate."""
    for step in operation.steps:
        if step["state"] == "running" or (state == OperationState.SUCCEEDED and step["state"] == "waiting"):
            step_set(operation, step["name"], "done" if state == OperationState.SUCCEEDED else "failed", at)
    operation.state, operation.reason, operation.ended_at = state, reason, at
    operation.detail = clean_text(detail, 500)
    event_write(
        kind="operation.ended",
        severity=Severity.WARNING if state == OperationState.FAILED else Severity.INFO,
        subject_kind="lease",
        subject_id=operation.lease_id,
        subject_name=operation.lease.title if operation.lease else "",
        server_id=operation.server_id,
        data={
            "operation_id": operation.pk,
            "kind": str(operation.kind),
            "state": str(state),
            "reason": str(reason),
            "asked_by": operation.actor_name,
        },
    )


def operation_save(operation: Operation) -> None:
    """Store an operation that changed and tell the pages."""
    operation.save()
    tell_operation(operation)


def operations_follow(lease: Lease, at: datetime) -> None:
    """Carry the open operations of a lease along with its state, in the caller's transaction on the locked row."""
    for operation in open_operations(lease):
        before = (operation.state, operation.attempts, [dict(step) for step in operation.steps])
        if operation.kind == OperationKind.ORDER:
            _follow_order(operation, lease, at)
        elif operation.kind == OperationKind.TERMINATE:
            _follow_end(operation, lease, at)
        if operation.ended_at is None and operation.deadline_at is not None and at >= operation.deadline_at:
            _time_out(operation, lease, at)
        if (operation.state, operation.attempts, operation.steps) != before:
            operation_save(operation)


def _follow_order(operation: Operation, lease: Lease, at: datetime) -> None:
    operation.attempts = int(lease.create_sent_at is not None)
    if lease.ended_at is not None:
        broken_off = next((step["name"] for step in operation.steps if step["state"] != "done"), "")
        step_set(operation, broken_off, "failed", at, lease.state_detail)
        operation_end(operation, OperationState.FAILED, at, lease.state_reason, lease.state_detail)
        return
    operation_start(operation, at)
    if not lease.external_id:
        step_set(operation, "create", "running", at, lease.state_detail)
        return
    step_set(operation, "create", "done", at)
    if lease.started_at is None:
        step_set(operation, "boot", "running", at)
        return
    step_set(operation, "boot", "done", at)
    if lease.state == LeaseState.ACTIVE:
        operation_end(operation, OperationState.SUCCEEDED, at)
        return
    step_set(operation, "join", "running", at)


def _follow_end(operation: Operation, lease: Lease, at: datetime) -> None:
    operation.attempts = lease.termination_attempts
    operation_start(operation, at)
    if lease.ended_at is not None:
        operation_end(operation, OperationState.SUCCEEDED, at)
    elif lease.termination_accepted_at is not None:
        step_set(operation, "send", "done", at)
        step_set(operation, "gone", "running", at)
    else:
        step_set(operation, "send", "running", at, lease.state_detail)


def _time_out(operation: Operation, lease: Lease, at: datetime) -> None:
    """End an operation whose time is over, and say on the lease what is left there."""
    reason = Reason.OUTCOME_UNKNOWN
    if operation.kind == OperationKind.ORDER and lease.external_id:
        reason = Reason.JOIN_TIMEOUT if lease.started_at is not None else Reason.BOOT_TIMEOUT
        Lease.objects.filter(pk=lease.pk, ended_at=None).update(state_reason=reason)
        lease.state_reason = reason
    operation_end(operation, OperationState.FAILED, at, reason)
