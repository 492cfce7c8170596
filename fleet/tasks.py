"""Jobs of the fleet that the clock starts."""

import contextlib

from celery import shared_task

from fleet.providers.errors import ProviderError
from fleet.services.driving import lease_step
from fleet.services.faults import sightings_clear
from fleet.services.jobs import jobs_expire
from fleet.services.lanes import account_place, lease_place, leases_to_send
from fleet.services.offers import offers_due, offers_refresh
from fleet.services.renewals import renewals_remind
from fleet.services.silence import servers_watch
from fleet.services.sync import account_sync, accounts_due
from panel.core.clock import now


@shared_task(name="fleet.tasks.servers_watch", soft_time_limit=30, time_limit=60)
def servers_watch_task() -> None:
    """Mark servers that fell silent or are heard again, and close faults that stopped repeating."""
    servers_watch(now=now())


@shared_task(name="fleet.tasks.sightings_clear", soft_time_limit=300, time_limit=600)
def sightings_clear_task() -> None:
    """Delete what no report can repeat any more."""
    sightings_clear(now=now())


@shared_task(name="fleet.tasks.jobs_expire", soft_time_limit=30, time_limit=60)
def jobs_expire_task() -> None:
    """Give up on jobs that no agent began or finished in time."""
    jobs_expire(at=now())


@shared_task(name="fleet.tasks.leasing_tick", soft_time_limit=30, time_limit=60)
def leasing_tick() -> None:
    """Send a task for each account and lease whose turn it is, so that none waits for another's slow provider."""
    at = now()
    for account_id in accounts_due(at=at):
        account_sync_task.apply_async((account_id,), expires=60)
    for lease_id in leases_to_send(at=at):
        lease_step_task.apply_async((lease_id,), expires=60)
    for account_id in offers_due(at=at):
        offers_fetch_task.apply_async((account_id,), expires=60)


@shared_task(name="fleet.tasks.account_sync", soft_time_limit=170, time_limit=180)
def account_sync_task(account_id: int) -> None:
    """Compare one account with its provider."""
    with account_place(account_id, seconds=180) as is_free:
        if is_free:
            account_sync(account_id=account_id)


@shared_task(name="fleet.tasks.lease_step", soft_time_limit=110, time_limit=120)
def lease_step_task(lease_id: int) -> None:
    """Do the next thing about one lease."""
    with lease_place(lease_id, seconds=120) as is_free:
        if is_free:
            lease_step(lease_id=lease_id)


@shared_task(name="fleet.tasks.offers_fetch", soft_time_limit=170, time_limit=180)
def offers_fetch_task(account_id: int) -> None:
    """Fetch one account's offers; a failure is kept with the account by the next sync."""
    with account_place(account_id, seconds=180) as is_free, contextlib.suppress(ProviderError):
        if is_free:
            offers_refresh(account_id=account_id)


@shared_task(name="fleet.tasks.renewals_remind", soft_time_limit=60, time_limit=120)
def renewals_remind_task() -> None:
    """Tell of paid terms that end soon."""
    renewals_remind(at=now())
