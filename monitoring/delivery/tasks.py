"""Jobs of delivery that the clock starts. Each may run twice, or be killed, at any point."""

from celery import shared_task

from monitoring.delivery.dispatcher import dispatch
from monitoring.delivery.keeping import notifications_forget
from panel.core.clock import now
from panel.core.places import place

ROUNDS_AT_ONCE = 1  # however slow servers answer, they hold one place of a worker


@shared_task(name="monitoring.delivery.tasks.dispatch", soft_time_limit=80, time_limit=90)
def dispatch_task() -> None:
    """Send what is due; leave it to the round that is under way if there is one."""
    with place({"delivery rounds": ROUNDS_AT_ONCE}, seconds=90) as is_free:
        if is_free:
            dispatch()


@shared_task(name="monitoring.delivery.tasks.forget", soft_time_limit=110, time_limit=120)
def forget_task() -> None:
    """Remove the record of what ended long ago."""
    notifications_forget(at=now())
