"""Having endpoints looked at again: their time is noted in the transaction, and a task is sent once it commits."""

from collections.abc import Collection
from datetime import datetime
from functools import partial

from celery import current_app
from django.db import transaction

from endpoints.models import Endpoint

RECONCILE_TASK = "endpoints.tasks.endpoint_reconcile"


def endpoint_wake(endpoint_ids: Collection[int], *, at: datetime) -> None:
    """Have endpoints looked at soon, in the caller's transaction. The clock looks too, should the task be lost."""
    endpoints_lock(endpoint_ids)
    Endpoint.objects.filter(pk__in=endpoint_ids, deleted_at=None).update(reconcile_at=at)
    for endpoint_id in endpoint_ids:
        transaction.on_commit(partial(_send, endpoint_id), robust=True)


def endpoints_lock(endpoint_ids: Collection[int]) -> None:
    """Lock endpoints for the caller's transaction, always in the same order: before their replicas and the routing clock."""
    list(Endpoint.objects.select_for_update().filter(pk__in=endpoint_ids).order_by("pk").values_list("pk"))


def _send(endpoint_id: int) -> None:
    current_app.send_task(RECONCILE_TASK, (endpoint_id,), expires=30, retry=False)
