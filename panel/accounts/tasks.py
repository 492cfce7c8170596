"""Housekeeping of the accounts."""

from celery import shared_task

from panel.accounts.services.housekeeping import accounts_clean


@shared_task(name="panel.accounts.tasks.clean", soft_time_limit=120, time_limit=180)
def clean() -> None:
    """Remove sessions that ran out, and tokens that ended long ago."""
    accounts_clean()
