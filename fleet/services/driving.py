"""One lease, one step at a time, until it is what people want: claim, ask the provider, apply."""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import QuerySet

from fleet.enums import LeaseState, Wanted
from fleet.leasing.lifecycle import ending_state, terminate_again_after
from fleet.models import Lease
from fleet.providers.base import CanOrder, Provider
from fleet.providers.errors import NotThere, ProviderError
from fleet.services.accounts import account_provider
from fleet.services.creating import create_settle, note_failure
from fleet.services.finding import lease_miss
from fleet.services.leases import lease_gone, lease_locked, lease_observe, lease_transition, life_of
from fleet.services.operations import operations_follow
from fleet.services.power import power_step
from fleet.services.telling_leases import tell_lease
from panel.core import claims
from panel.core.clock import now

CLAIM_SECONDS: Final = 120.0
WATCH_EVERY: Final = timedelta(seconds=10)

_ON_THE_WAY: Final = frozenset(
    {LeaseState.REQUESTED, LeaseState.PROVISIONING, LeaseState.BOOTING, LeaseState.STOPPING, LeaseState.TERMINATING}
)

log = structlog.get_logger(__name__)


def leases_waiting(*, at: datetime) -> QuerySet[Lease]:
    """Return the open leases that something is to be done about now and that nobody is at, longest waiting first."""
    due = Lease.objects.filter(claims.unclaimed(at), ended_at=None, next_step_at__lte=at, account__removed_at=None)
    return due.order_by("next_step_at")


def leases_due(*, at: datetime) -> list[int]:
    """Return the ids of `leases_waiting`."""
    return list(leases_waiting(at=at).values_list("pk", flat=True))


def lease_step(*, lease_id: int) -> None:
    """Do the next thing about a lease. Does nothing when another process does, or when there is nothing to do."""
    open_leases = Lease.objects.filter(ended_at=None, account__isnull=False, next_step_at__lte=now())
    token = claims.claim(open_leases, lease_id, seconds=CLAIM_SECONDS)
    if token is None:
        return
    lease = Lease.objects.select_related("account").get(pk=lease_id)
    assert lease.account is not None  # noqa: S101 (see the filter)
    try:
        provider = account_provider(lease.account)
        _step(lease, provider)
    finally:
        with transaction.atomic():
            lease = lease_locked(lease_id)
            at = now()
            operations_follow(lease, at)
            lease.next_step_at = _next_step_at(lease, at)
            lease.save(update_fields=["next_step_at"])
            claims.release(Lease, lease_id, token)


def _next_step_at(lease: Lease, at: datetime) -> datetime | None:
    """Return when the lease is looked at again by itself; None when the sync of its account is enough."""
    if lease.ended_at is not None:
        return None
    if lease.external_id and lease.wanted == Wanted.ENDED:
        return at + terminate_again_after(lease.termination_attempts)
    if not lease.external_id:
        return at + min(WATCH_EVERY * (1 + lease.lookups // 6), timedelta(minutes=1))
    if lease.state in _ON_THE_WAY or lease.operations.filter(ended_at=None).exists():
        return at + WATCH_EVERY
    return None


def _step(lease: Lease, provider: Provider) -> None:
    if not provider.is_synced:
        return
    if not lease.external_id:
        create_settle(lease, provider)
    elif lease.wanted == Wanted.ENDED:
        _end(lease, provider)
    elif not power_step(lease, provider):
        _look(lease, provider)


def _end(lease: Lease, provider: Provider) -> None:
    """Ask for the machine's end, then ask whether it is gone. Only its absence ends the billing."""
    assert isinstance(provider, CanOrder)  # noqa: S101 (only such leases are wanted ended, see fleet.services.power)
    failure: ProviderError | None = None
    is_gone = False
    try:
        provider.terminate(lease.external_id)
    except NotThere:
        is_gone = True
    except ProviderError as error:
        failure = error
    asked_at = now()
    machine = None
    if not is_gone and failure is None:
        try:
            machine = provider.machine(lease.external_id)
            is_gone = machine is None
        except ProviderError as error:
            failure = error
    with transaction.atomic():
        row, at = lease_locked(lease.pk), now()
        if row.ended_at is not None:
            return
        row.termination_attempts += 1
        row.save(update_fields=["termination_attempts"])
        if is_gone and _may_be_gone(row, provider, asked_at):
            lease_gone(row, at=at)
            return
        _still_ending(row, failure, at)


def _may_be_gone(row: Lease, provider: Provider, asked_at: datetime) -> bool:
    """Say whether a machine that is not shown is gone, or so young that the provider may not show it yet."""
    settled = row.create_settled_at or row.requested_at
    return row.observed_at is not None or asked_at >= settled + provider.appears_within


def _still_ending(row: Lease, failure: ProviderError | None, at: datetime) -> None:
    if failure is None and row.termination_accepted_at is None:
        row.termination_accepted_at = at
        row.save(update_fields=["termination_accepted_at"])
    state, reason = ending_state(life_of(row), at)
    words = failure.message if failure is not None else ""
    lease_transition(row, state, failure.reason if failure is not None else reason, at=at, detail=words)
    tell_lease(row)


def _look(lease: Lease, provider: Provider) -> None:
    """Ask for one machine that is on its way."""
    asked_at = now()
    try:
        machine = provider.machine(lease.external_id)
    except ProviderError as error:
        note_failure(lease.pk, error)
        return
    with transaction.atomic():
        row, at = lease_locked(lease.pk), now()
        if row.ended_at is not None:
            return
        if machine is None:
            lease_miss(row, provider, asked_at=asked_at, at=at)
        else:
            lease_observe(row, machine, at=at)
