"""One lease, one step at a time, until it is what people want: claim, ask the provider, apply.

A create is sent at most once without an answer. Before it is sent that is written down; after a lost answer, or a crash in
between, the account is searched for the machine's name instead, again and again, and only a provider that itself refuses
to create twice for one token is asked a second time.
"""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction

from fleet.enums import LeaseState, Wanted
from fleet.leasing.lifecycle import ending_state, terminate_again_after
from fleet.models import Lease
from fleet.providers.base import CanOrder, Provider
from fleet.providers.errors import NotThere, ProviderError, Throttled, Unavailable
from fleet.reasons import Reason
from fleet.services.accounts import account_provider
from fleet.services.cleaning import clean_machine
from fleet.services.leases import bill, lease_gone, lease_locked, lease_observe, lease_transition, life_of
from fleet.services.operations import operations_follow
from fleet.services.ordering import unseal
from fleet.services.power import power_step
from fleet.services.sync import lease_link, lease_miss
from fleet.services.telling_leases import tell_lease
from panel.core import claims
from panel.core.clock import now

CLAIM_SECONDS: Final = 120.0
WATCH_EVERY: Final = timedelta(seconds=10)
LOOKUPS_UNTIL_GIVEN_UP: Final = 3

_ON_THE_WAY: Final = frozenset(
    {LeaseState.REQUESTED, LeaseState.PROVISIONING, LeaseState.BOOTING, LeaseState.STOPPING, LeaseState.TERMINATING}
)

log = structlog.get_logger(__name__)


def leases_due(*, at: datetime) -> list[int]:
    """Return the open leases that something is to be done about now, longest waiting first."""
    due = Lease.objects.filter(claims.unclaimed(at), ended_at=None, next_step_at__lte=at, account__removed_at=None)
    return list(due.order_by("next_step_at").values_list("pk", flat=True))


def lease_step(*, lease_id: int) -> None:
    """Do the next thing about a lease. Does nothing when another process does, or when there is nothing to do."""
    open_leases = Lease.objects.filter(ended_at=None, account__isnull=False)
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
        _settle_create(lease, provider)
    elif lease.wanted == Wanted.ENDED:
        _end(lease, provider)
    elif not power_step(lease, provider):
        _look(lease, provider)


def _settle_create(lease: Lease, provider: Provider) -> None:
    """Create the machine, or find out whether it was created."""
    assert isinstance(provider, CanOrder)  # noqa: S101 (orders are placed with such providers alone)
    if lease.create_sent_at is not None and not _is_found(lease, provider):
        if not provider.has_client_token:
            return
    elif lease.create_sent_at is not None:
        return
    if lease.wanted == Wanted.ENDED:
        if lease.create_sent_at is None:
            _never_created(lease.pk, Reason.USER, "")
        return
    _create(lease, provider)


def _create(lease: Lease, provider: CanOrder) -> None:
    """Send the create once, having written down that it is sent; apply its outcome."""
    with transaction.atomic():
        row = lease_locked(lease.pk)
        if row.external_id or row.ended_at is not None or row.wanted == Wanted.ENDED:
            return
        if row.create_sent_at != lease.create_sent_at:
            return  # this process slept past its claim, and another one has sent it
        row.create_sent_at = now()
        row.save(update_fields=["create_sent_at"])
    try:
        external_id = provider.create(unseal(lease.sealed_order))
    except (Throttled, Unavailable) as error:
        _not_sent_after_all(lease.pk, error)
        return
    except ProviderError as error:
        if error.is_definite:
            _never_created(lease.pk, error.reason, error.message)
        else:
            _note(lease.pk, error)
        return
    _created(lease.pk, external_id)


def _created(lease_id: int, external_id: str) -> None:
    with transaction.atomic():
        row, at = lease_locked(lease_id), now()
        if row.external_id not in {"", external_id}:
            log.warning("lease.created_twice", lease_id=lease_id, external_id=external_id)  # the sync shows it as drift
            return
        row.external_id, row.create_settled_at, row.sealed_order = external_id, at, ""
        row.save(update_fields=["external_id", "create_settled_at", "sealed_order"])
        if row.ended_at is not None:
            return  # given up meanwhile: the sync sees that it is there and has it ended
        lease_transition(row, LeaseState.PROVISIONING, Reason.NONE, at=at, by="provider")
        bill(row, at, is_confirmed=True)
        tell_lease(row)


def _not_sent_after_all(lease_id: int, error: ProviderError) -> None:
    """Take back that the create was sent: the provider did not do it, and the next step tries again."""
    with transaction.atomic():
        row = lease_locked(lease_id)
        row.create_sent_at = None
        row.save(update_fields=["create_sent_at"])
        lease_transition(row, LeaseState(row.state), error.reason, at=now(), detail=error.message)
        tell_lease(row)


def _note(lease_id: int, error: ProviderError) -> None:
    """Keep a failure's words with the lease; its state stays."""
    with transaction.atomic():
        row = lease_locked(lease_id)
        if lease_transition_words(row, error):
            tell_lease(row)


def lease_transition_words(row: Lease, error: ProviderError) -> bool:
    """Keep a failure's reason and words, in the caller's transaction; return whether they are new."""
    before = (row.state_reason, row.state_detail)
    lease_transition(row, LeaseState(row.state), error.reason, at=now(), detail=error.message)
    return before != (row.state_reason, row.state_detail)


def _never_created(lease_id: int, reason: Reason, words: str) -> None:
    """End a lease that never came to be: nothing was created, nothing is billed, its waiting server goes."""
    from fleet.services.servers import server_forget_ordered

    with transaction.atomic():
        row, at = lease_locked(lease_id), now()
        to = LeaseState.TERMINATED if reason == Reason.USER else LeaseState.FAILED
        lease_transition(row, to, reason, at=at, by="provider", detail=words)
        row.ended_at, row.create_settled_at, row.sealed_order = at, at, ""
        row.save(update_fields=["ended_at", "create_settled_at", "sealed_order"])
        bill(row, at, is_confirmed=True)
        operations_follow(row, at)
        tell_lease(row)
        if row.server_id is not None:
            server_forget_ordered(server_id=row.server_id)


def _is_found(lease: Lease, provider: Provider) -> bool:
    """Search the account for the machine whose create was not answered; give up only after it must have appeared."""
    asked_at = now()
    try:
        candidates = [clean_machine(machine) for machine in provider.named(lease.name)]
    except ProviderError as error:
        _note(lease.pk, error)
        return True  # the search itself has no outcome, so nothing is sent either
    with transaction.atomic():
        row, at = lease_locked(lease.pk), now()
        if row.external_id:
            return True
        if (machine := lease_link(row, candidates, at=at)) is not None:
            lease_observe(row, machine, at=at)
            return True
        row.lookups += 1
        row.save(update_fields=["lookups"])
    assert row.create_sent_at is not None  # noqa: S101 (asked by the caller)
    is_overdue = asked_at >= row.create_sent_at + 2 * provider.appears_within
    if is_overdue and row.lookups >= LOOKUPS_UNTIL_GIVEN_UP:
        # Should it appear after all, the sync knows it by its name and ends it.
        reason = Reason.USER if row.wanted == Wanted.ENDED else Reason.OUTCOME_UNKNOWN
        _never_created(row.pk, reason, "")
        return True
    return False


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
        _note(lease.pk, error)
        return
    with transaction.atomic():
        row, at = lease_locked(lease.pk), now()
        if row.ended_at is not None:
            return
        if machine is None:
            lease_miss(row, provider, asked_at=asked_at, at=at)
        else:
            lease_observe(row, machine, at=at)
