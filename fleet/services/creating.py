"""Creating the machine of an order, once: sent, or searched for, until it is known what became of it.

A create is sent at most once without an answer. Before it is sent that is written down; after a lost answer, or a crash in
between, the account is searched for the machine's name instead, again and again, and only a provider that itself refuses
to create twice for one token is asked again, while it surely still knows the token. `create_sent_at` stays when it was first
sent: from it on the token lives, and the search ends.
"""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.enums import LeaseState, Wanted
from fleet.models import Lease
from fleet.providers.base import CanOrder, Provider
from fleet.providers.errors import AccessRefused, ProviderError, Throttled, Unavailable
from fleet.reasons import Reason
from fleet.services.cleaning import clean_machine
from fleet.services.finding import lease_link
from fleet.services.leases import bill, lease_locked, lease_observe, lease_transition
from fleet.services.operations import operations_follow
from fleet.services.ordering import unseal
from fleet.services.rebuilding import server_order_failed
from fleet.services.telling_leases import tell_lease
from panel.core.clock import now
from panel.core.installation import is_copied

LOOKUPS_UNTIL_GIVEN_UP: Final = 3

log = structlog.get_logger(__name__)


def create_settle(lease: Lease, provider: Provider) -> None:
    """Create the machine, or find out whether it was created."""
    assert isinstance(provider, CanOrder)  # noqa: S101 (orders are placed with such providers alone)
    if lease.create_sent_at is not None and (_is_found(lease, provider) or not may_resend(lease, provider, now())):
        return
    if lease.wanted == Wanted.ENDED:
        if lease.create_sent_at is None:
            never_created(lease.pk, Reason.USER, "")
        return
    _create(lease, provider)


def may_resend(lease: Lease, provider: CanOrder, at: datetime) -> bool:
    """Say whether a create that was sent may be sent again: the provider itself then answers with the first one's machine."""
    sent_at = lease.create_sent_at
    return sent_at is not None and provider.has_client_token and at < sent_at + provider.client_token_lifetime


def _create(lease: Lease, provider: CanOrder) -> None:
    """Send the create, having written down that it is sent; apply its outcome."""
    is_first = lease.create_sent_at is None
    if is_first and is_copied():
        return  # the panel that this database was copied from sends it; see fleet.services.installation
    with transaction.atomic():
        row = lease_locked(lease.pk)
        if row.external_id or row.ended_at is not None or row.wanted == Wanted.ENDED:
            return
        if row.create_sent_at != lease.create_sent_at:
            return  # this process slept past its claim, and another one has sent it
        if is_first:
            row.create_sent_at = now()
            row.save(update_fields=["create_sent_at"])
        elif not may_resend(row, provider, now()):
            return
    try:
        external_id = provider.create(unseal(lease.sealed_order))
    except (Throttled, Unavailable, AccessRefused) as error:
        if not is_first:
            note_failure(lease.pk, error)  # this one did nothing; the first may have
        elif isinstance(error, AccessRefused):
            never_created(lease.pk, error.reason, error.message)
        else:
            _not_sent_after_all(lease.pk, error)
        return
    except ProviderError as error:
        if error.is_definite:
            never_created(lease.pk, error.reason, error.message)
        else:
            note_failure(lease.pk, error)
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


def note_failure(lease_id: int, error: ProviderError) -> None:
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


def never_created(lease_id: int, reason: Reason, words: str) -> None:
    """End a lease that never came to be: nothing was created, nothing is billed, its waiting server goes, or is what it was."""
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
            server_order_failed(server_id=row.server_id, reason=reason)


def _is_found(lease: Lease, provider: Provider) -> bool:
    """Search the account for the machine whose create was not answered; give up only after it must have appeared."""
    asked_at = now()
    try:
        candidates = [clean_machine(machine) for machine in provider.named(lease.name)]
    except ProviderError as error:
        note_failure(lease.pk, error)
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
    if asked_at < given_up_at(row, provider) or row.lookups < LOOKUPS_UNTIL_GIVEN_UP:
        return False
    # Should it appear after all, the sync knows it by its name and ends it.
    never_created(row.pk, Reason.USER if row.wanted == Wanted.ENDED else Reason.OUTCOME_UNKNOWN, _given_up_words(row))
    return True


def given_up_at(lease: Lease, provider: Provider) -> datetime:
    """Return from when on a machine that still does not show was never made: well after the last create that was sent."""
    assert lease.create_sent_at is not None  # noqa: S101 (asked of orders that were sent)
    resent_for = timedelta(0)
    if isinstance(provider, CanOrder) and provider.has_client_token:
        resent_for = provider.client_token_lifetime
    return lease.create_sent_at + resent_for + 2 * provider.appears_within


def _given_up_words(lease: Lease) -> str:
    return _(
        "Searched for %(count)s times: no machine in the account is called %(name)s. Nothing more is sent; should it appear "
        "after all, it is ended. Order again if it is still wanted."
    ) % {"count": lease.lookups, "name": lease.name}
