"""Jobs of diagnoses that the clock starts."""

from celery import shared_task

from monitoring.diagnosing.following import diagnoses_follow
from monitoring.diagnosing.watching import objectives_watch
from panel.core.clock import now


@shared_task(name="monitoring.diagnosing.tasks.follow", soft_time_limit=60, time_limit=90)
def follow() -> None:
    """Bring diagnoses under way up to date."""
    diagnoses_follow(at=now())


@shared_task(name="monitoring.diagnosing.tasks.watch", soft_time_limit=60, time_limit=90)
def watch() -> None:
    """Begin diagnoses of endpoints that miss their objective."""
    objectives_watch(at=now())
