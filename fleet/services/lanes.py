"""How much of the workers one account may take, so that a provider that does not answer holds up its own machines alone.

Every task that asks a provider holds a place of its account meanwhile. An account has one place less than a worker has
tasks at once, four at most; all accounts in trouble (those whose last sync failed) share half of a worker besides. What
finds no place is left as it is and sent again by the next tick.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from django.conf import settings

from fleet.models import Lease, ProviderAccount
from fleet.services.driving import leases_waiting
from panel.core.places import place

CALLS_OF_AN_ACCOUNT: Final = 4
# So many tasks of one account are sent by one tick, longest waiting first: a quick provider does several in a place.
SENT_AT_ONCE: Final = 16
IN_TROUBLE: Final = "providers-in-trouble"


def _at_once() -> int:
    concurrency: int = settings.CELERY_WORKER_CONCURRENCY
    return concurrency


def places_of_account() -> int:
    """Return how many calls of one account may be under way at once."""
    return max(1, min(CALLS_OF_AN_ACCOUNT, _at_once() - 1))


def places_in_trouble() -> int:
    """Return how many calls of accounts whose provider failed last may be under way at once, all together."""
    return max(1, _at_once() // 2)


def account_place_name(account_id: int) -> str:
    """Return the name of an account's places."""
    return f"account-{account_id}"


@contextlib.contextmanager
def account_place(account_id: int, *, seconds: float) -> Iterator[bool]:
    """Hold a place of an account while its provider is asked, at most `seconds`; yields whether there was one."""
    limits = {account_place_name(account_id): places_of_account()}
    if ProviderAccount.objects.filter(pk=account_id, failures__gt=0).exists():
        limits[IN_TROUBLE] = places_in_trouble()
    with place(limits, seconds=seconds) as is_taken:
        yield is_taken


@contextlib.contextmanager
def lease_place(lease_id: int, *, seconds: float) -> Iterator[bool]:
    """Hold a place of a lease's account; none for a lease that is not there or has no account."""
    account_id = Lease.objects.filter(pk=lease_id).values_list("account_id", flat=True).first()
    if account_id is None:
        yield False
        return
    with account_place(account_id, seconds=seconds) as is_taken:
        yield is_taken


def leases_to_send(*, at: datetime) -> list[int]:
    """Return the leases whose turn it is, longest waiting first, and of each account only as many as may soon be done."""
    chosen: list[int] = []
    counts: dict[int | None, int] = defaultdict(int)
    for lease_id, account_id in leases_waiting(at=at).values_list("pk", "account_id"):
        counts[account_id] += 1
        if counts[account_id] <= SENT_AT_ONCE:
            chosen.append(lease_id)
    return chosen
