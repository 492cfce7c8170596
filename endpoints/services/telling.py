"""What pages hear after a commit: endpoints as they are now."""

from django.db import transaction

from endpoints.models import Endpoint
from panel.core.live import publish_later


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
