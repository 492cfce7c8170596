"""Jobs of endpoints that the clock or a change starts."""

from celery import shared_task

from endpoints.services.keys import keys_settle
from endpoints.services.reaching import endpoints_reach
from endpoints.services.reconcile import endpoint_reconcile, endpoints_due
from endpoints.services.traffic import traffic_forget
from endpoints.services.waking import RECONCILE_TASK
from panel.core.clock import now


@shared_task(name="endpoints.tasks.tick", soft_time_limit=20, time_limit=30)
def tick() -> None:
    """Send a task for each endpoint that somebody must look at; have those started anew that a new gateway cannot reach."""
    endpoints_reach()
    for endpoint_id in endpoints_due(at=now()):
        endpoint_reconcile_task.apply_async((endpoint_id,), expires=10)


@shared_task(name=RECONCILE_TASK, soft_time_limit=30, time_limit=60)
def endpoint_reconcile_task(endpoint_id: int) -> None:
    """Take the next steps about one endpoint."""
    endpoint_reconcile(endpoint_id=endpoint_id)


@shared_task(name="endpoints.tasks.keys_settle", soft_time_limit=20, time_limit=30)
def keys_settle_task() -> None:
    """Hold keys that used up their tokens of this minute, and let go those whose minute is over."""
    keys_settle(at=now())


@shared_task(name="endpoints.tasks.traffic_forget", soft_time_limit=120, time_limit=300)
def traffic_forget_task() -> None:
    """Delete what is older than is kept."""
    traffic_forget(at=now())
