"""What agents and pages hear after a commit: orders that changed, endpoints as they are now."""

from collections.abc import Iterable
from functools import partial

from django.db import transaction
from django.db.models import F

from endpoints.models import Endpoint
from fleet.models import Agent
from fleet.services.telling import tell_assignments
from panel.core.live import publish_later


def tell_servers_orders(server_ids: Iterable[int]) -> None:
    """Have these servers' agents fetch their assignments once the transaction commits.

    Their versions are counted on after it: within, two transactions that change several agents would wait for one another.
    Should this process die in between, an agent that asks twice a minute hears of it then.
    """
    transaction.on_commit(partial(_send_orders, frozenset(server_ids)), robust=True)


def _send_orders(server_ids: frozenset[int]) -> None:
    for agent_id in Agent.objects.filter(server_id__in=server_ids, revoked_at=None).values_list("pk", flat=True):
        Agent.objects.filter(pk=agent_id).update(assignments_version=F("assignments_version") + 1)
        tell_assignments(agent_id)


def tell_endpoint(endpoint: Endpoint) -> None:
    """Publish an endpoint with its replicas, as it stands when the transaction commits."""

    def send() -> None:
        from endpoints.selectors import endpoint_live  # the selector reads what services write

        fresh = Endpoint.objects.select_related("active_revision", "target_revision").get(pk=endpoint.pk)
        live = endpoint_live(fresh)
        publish_later("endpoints", {"endpoints": {str(fresh.pk): live["endpoint"]}})
        publish_later(
            f"endpoint.{fresh.pk}", {"endpoint": {str(fresh.pk): live["endpoint"]}, "replicas": live["replicas"]}
        )

    transaction.on_commit(send)
