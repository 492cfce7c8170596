"""The only place that assigns a lease's state, and what a provider's word about one machine changes: state, bill, drift."""

from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from fleet.enums import LeaseState, PriceComponent, PriceUnit, Wanted
from fleet.leasing.lifecycle import LEASE_TRANSITIONS, Life, billed_mode, state_after_loss, state_after_status
from fleet.leasing.terms import TIME_TERMS
from fleet.models import BilledInterval, Lease, LeasePrice
from fleet.providers.base import Machine, MachineStatus
from fleet.reasons import Reason
from fleet.services.cleaning import clean_json, clean_text
from fleet.services.rebuilding import server_machine_gone, server_placed
from fleet.services.telling_leases import tell_lease
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.errors import Conflict, NotFound, Stale
from panel.core.events import event_write
from panel.core.money import Money

_SEVERITY: Final = {
    LeaseState.FAILED: Severity.CRITICAL,
    LeaseState.PREEMPTED: Severity.WARNING,
    LeaseState.LOST: Severity.CRITICAL,
    LeaseState.TERMINATION_UNCONFIRMED: Severity.CRITICAL,
    LeaseState.UNKNOWN: Severity.WARNING,
}


def lease_locked(lease_id: int) -> Lease:
    """Return the lease's row, locked for the caller's transaction. Raises NotFound."""
    lease = Lease.objects.select_for_update().filter(pk=lease_id).first()
    if lease is None:
        raise NotFound(_("There is no such lease."))
    return lease


def life_of(lease: Lease) -> Life:
    """Return what decides about the lease's state beside the provider's word."""
    return Life(
        state=LeaseState(lease.state),
        wanted=Wanted(lease.wanted),
        is_waiting_for_agent=lease.expects_agent and not agent_has_joined(lease),
        ending_since=lease.termination_requested_at,
    )


def agent_has_joined(lease: Lease) -> bool:
    """Say whether the machine's agent has joined since the lease was requested."""
    joined_at = lease.server.agent.joined_at if lease.server is not None and hasattr(lease.server, "agent") else None
    return joined_at is not None and joined_at >= lease.requested_at


def lease_transition(
    lease: Lease, to: LeaseState, reason: Reason | str, *, at: datetime, by: str = "", detail: str = ""
) -> bool:
    """Put a lease into a state, in the caller's transaction; return whether the state changed.

    Raises Conflict (the table does not allow it) or Stale (another process was first).
    """
    before = LeaseState(lease.state)
    is_change = to != before
    if is_change and to not in LEASE_TRANSITIONS[before]:
        raise Conflict(
            _("Lease %(name)s is “%(before)s” and cannot become “%(to)s”.")
            % {"name": lease.title, "before": before.label, "to": to.label},
            code="transition_refused",
        )
    detail = clean_text(detail, 500)
    if not is_change and (lease.state_reason, lease.state_detail) == (str(reason), detail):
        return False
    values = {"state": to, "state_reason": reason, "state_detail": detail, "version": lease.version + 1}
    if is_change:
        values["state_changed_at"] = at
    if not Lease.objects.filter(pk=lease.pk, version=lease.version).update(**values):
        raise Stale(_("Somebody else changed this first. Look at it again and repeat."))
    for name, value in values.items():
        setattr(lease, name, value)
    if is_change:
        _write_event(lease, before, by)
    return is_change


def _write_event(lease: Lease, before: LeaseState, by: str) -> None:
    event_write(
        kind="lease.state_changed",
        severity=_SEVERITY.get(LeaseState(lease.state), Severity.INFO),
        subject_kind="lease",
        subject_id=lease.pk,
        subject_name=lease.title,
        server_id=lease.server_id,
        data={
            "from": str(before),
            "to": str(lease.state),
            "reason": str(lease.state_reason),
            "detail": lease.state_detail,
            "by": by,
        },
    )


def bill(lease: Lease, at: datetime, *, is_confirmed: bool) -> None:
    """Make the running billed interval say how the lease is billed from `at` on; nothing changes when it does already."""
    mode = None
    if lease.ended_at is None:
        mode = billed_mode(LeaseState(lease.state), is_stop_saving=lease.is_stop_saving)
    running = BilledInterval.objects.select_for_update().filter(lease=lease, ended_at=None).first()
    if running is not None and running.mode == mode:
        return
    if running is not None:
        running.ended_at = at = max(at, running.started_at)
        running.is_confirmed = is_confirmed
        running.save(update_fields=["ended_at", "is_confirmed"])
    if mode is not None:
        terms = {name: getattr(lease, name) for name in TIME_TERMS}
        BilledInterval.objects.create(lease=lease, mode=mode, started_at=at, **terms)


def price_set(
    lease: Lease,
    price: Money,
    *,
    at: datetime,
    source: str,
    component: PriceComponent = PriceComponent.COMPUTE,
    unit: PriceUnit = PriceUnit.HOUR,
    runs_while_stopped: bool = False,
) -> LeasePrice:
    """Put a price in force from `at` on: what was in force then ends there, and what was to follow never counts.

    What was before `at` is never re-priced.
    """
    price = price.rounded()
    later = LeasePrice.objects.select_for_update().filter(Q(effective_to=None) | Q(effective_to__gt=at))
    for before in later.filter(lease=lease, component=component):
        same = (before.amount, before.currency, before.unit, before.runs_while_stopped, before.effective_to)
        if before.effective_from <= at and same == (price.amount, price.currency, unit, runs_while_stopped, None):
            return before
        before.effective_to = max(at, before.effective_from)
        before.save(update_fields=["effective_to"])
    return price_new(
        lease, price, at=at, source=source, component=component, unit=unit, runs_while_stopped=runs_while_stopped
    )


def price_new(
    lease: Lease,
    price: Money,
    *,
    at: datetime,
    source: str,
    component: PriceComponent = PriceComponent.COMPUTE,
    unit: PriceUnit = PriceUnit.HOUR,
    runs_while_stopped: bool = False,
) -> LeasePrice:
    """Put the first price of a part in force from `at` on; see `price_set`."""
    price = price.rounded()
    return LeasePrice.objects.create(
        lease=lease,
        component=component,
        amount=price.amount,
        currency=price.currency,
        unit=unit,
        runs_while_stopped=runs_while_stopped,
        effective_from=at,
        source=source,
        noted_at=now(),
    )


def observed_facts(machine: Machine) -> dict[str, Any]:
    """Return a machine as it is stored with its lease: JSON-ready, money as text."""
    facts: dict[str, Any] = {
        "name": machine.name,
        "gpu_model": machine.gpu_model,
        "raw_gpu": machine.raw_gpu,
        "gpu_count": machine.gpu_count,
        "gpu_memory_bytes": machine.gpu_memory_bytes,
        "cpu_count": machine.cpu_count,
        "memory_bytes": machine.memory_bytes,
        "region": machine.region,
        "billing": str(machine.billing),
        "price_per_hour": str(machine.price_per_hour.amount) if machine.price_per_hour else None,
        "currency": machine.price_per_hour.currency if machine.price_per_hour else "",
        "address": machine.address,
        "ssh_port": machine.ssh_port,
        "actions": sorted(machine.actions) if machine.actions is not None else None,
        "details": dict(machine.details),
    }
    cleaned: dict[str, Any] = clean_json({key: value for key, value in facts.items() if value not in (None, "")})
    return cleaned


def lease_observe(lease: Lease, machine: Machine, *, at: datetime) -> bool:
    """Apply a provider's word about a machine that is there, in the caller's transaction on the locked row.

    Returns whether anything but the time of observation changed.
    """
    before = (lease.status, lease.raw_status, lease.observed, lease.is_stop_saving, lease.misses, lease.ended_at)
    lease.status, lease.raw_status = machine.status, clean_text(machine.raw_status, 100)
    lease.observed, lease.observed_at, lease.misses = observed_facts(machine), at, 0
    if machine.is_stop_saving is not None or machine.status == MachineStatus.RUNNING:
        lease.is_stop_saving = machine.is_stop_saving
    if machine.status == MachineStatus.RUNNING and lease.started_at is None:
        lease.started_at = at
        server_placed(lease)
    if lease.renews_at is None or machine.renews_at is not None:
        lease.renews_at = machine.renews_at
    thought_over_at = lease.ended_at
    if thought_over_at is not None:
        _reopen(lease, at)
    state, reason = state_after_status(life_of(lease), machine.status, at)
    keeps_words = state == lease.state and reason == Reason.NONE and lease.state_reason in _WAITING_REASONS
    is_changed = before != (
        lease.status,
        lease.raw_status,
        lease.observed,
        lease.is_stop_saving,
        lease.misses,
        lease.ended_at,
    )
    if not keeps_words:
        is_changed |= lease_transition(lease, state, reason, at=at, by="provider")
    lease.save(update_fields=_OBSERVED_FIELDS)
    bill(lease, thought_over_at or at, is_confirmed=True)  # a machine that is there again was billed all the while
    if is_changed:
        tell_lease(lease)
    return is_changed


def _reopen(lease: Lease, at: datetime) -> None:
    """Count a lease as open whose machine is there again; an end that was wanted, or an order given up, is carried on."""
    lease.ended_at = None
    if lease.state in {LeaseState.TERMINATED, LeaseState.FAILED} and lease.wanted != Wanted.ENDED:
        lease.wanted, lease.termination_requested_at = Wanted.ENDED, at
    if lease.wanted == Wanted.ENDED:
        lease.next_step_at = at
    if lease.server_id and Lease.objects.filter(server=lease.server_id, ended_at=None).exclude(pk=lease.pk).exists():
        lease.server = None  # another machine is that server by now


_WAITING_REASONS: Final = {Reason.BOOT_TIMEOUT, Reason.JOIN_TIMEOUT}
_OBSERVED_FIELDS: Final = (
    "status",
    "raw_status",
    "observed",
    "observed_at",
    "misses",
    "is_stop_saving",
    "started_at",
    "renews_at",
    "ended_at",
    "wanted",
    "termination_requested_at",
    "next_step_at",
    "server",
)


def lease_gone(lease: Lease, *, at: datetime, detail: str = "") -> None:
    """Apply that the provider does not know the machine any more: its billing has ended. In the caller's transaction."""
    state, reason = state_after_loss(life_of(lease), MachineStatus(lease.status))
    lease_transition(lease, state, reason, at=at, by="provider", detail=detail)
    lease.status, lease.ended_at, lease.next_step_at = MachineStatus.GONE, at, None
    lease.observed_at = at
    lease.save(update_fields=["status", "ended_at", "next_step_at", "observed_at"])
    bill(lease, at, is_confirmed=True)
    tell_lease(lease)
    if lease.server_id is not None:
        transaction.on_commit(lambda: _tell_server(lease))


def _tell_server(lease: Lease) -> None:
    """Retire the server of a machine that was ended here: nothing will report from it again."""
    assert lease.server_id is not None  # noqa: S101 (asked by the caller)
    is_ended = lease.state == LeaseState.TERMINATED
    reason = "lease_ended" if is_ended else lease.state_reason
    server_machine_gone(server_id=lease.server_id, reason=reason, is_ended=is_ended, note=lease.name)
