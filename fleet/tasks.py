"""Jobs of the fleet that the clock starts."""

from celery import shared_task

from fleet.services.faults import sightings_clear
from fleet.services.silence import servers_watch
from panel.core.clock import now


@shared_task(name="fleet.tasks.servers_watch", soft_time_limit=30, time_limit=60)
def servers_watch_task() -> None:
    """Mark servers that fell silent or are heard again, and close faults that stopped repeating."""
    servers_watch(now=now())


@shared_task(name="fleet.tasks.sightings_clear", soft_time_limit=300, time_limit=600)
def sightings_clear_task() -> None:
    """Delete what no report can repeat any more."""
    sightings_clear(now=now())
