"""Jobs of the project itself that the clock starts."""

from celery import shared_task

from panel.health.deadman import deadman_ping


@shared_task(name="panel.tasks.deadman_ping", soft_time_limit=40, time_limit=50)
def deadman_ping_task() -> None:
    """Tell an outside watcher that the panel is well."""
    deadman_ping()
