"""Endpoints and their engines as Prometheus metrics: newest values that are fresh; nothing stale, and what is missing is no 0."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from django.utils import timezone

from endpoints.enums import Phase, ReplicaState
from endpoints.models import Endpoint, Replica
from endpoints.selectors import endpoint_list
from endpoints.traffic import traffic_of
from monitoring.exposition import Exposition, labels_text
from monitoring.metrics import ENGINE_METRICS
from monitoring.selectors import Latest, latest_for_replicas

FRESH: Final = timedelta(minutes=2)
# Traffic is of so much time: long enough for a rate, short enough for the present.
WINDOW: Final = timedelta(minutes=1)


def endpoint_metrics(write: Exposition) -> Iterator[str]:
    """Return every family of endpoints, replicas and engines, in a fixed number of queries. Raises DatabaseError."""
    endpoints = list(endpoint_list())
    labels = {endpoint.pk: labels_text(endpoint=endpoint.name) for endpoint in endpoints}
    yield from _states(write, endpoints, labels)
    yield from _traffic(write, endpoints, labels)
    yield from _engines(write, labels)


def _states(write: Exposition, endpoints: Sequence[Endpoint], labels: dict[int, str]) -> Iterator[str]:
    yield write.gauge(
        "fleetdeck_endpoint_phase",
        "1 for the phase that it is in.",
        (
            (f'{labels[endpoint.pk]},phase="{phase}"', float(endpoint.phase == phase))
            for endpoint in endpoints
            for phase in Phase.values
        ),
    )
    for name, about in (("ready", "Replicas that take requests."), ("pending", "Replicas on their way.")):
        rows = ((labels[endpoint.pk], float(getattr(endpoint, name))) for endpoint in endpoints)
        yield write.gauge(f"fleetdeck_endpoint_{name}_replicas", about, rows)
    yield write.gauge(
        "fleetdeck_endpoint_desired_replicas",
        "Replicas that are wanted.",
        ((labels[endpoint.pk], float(endpoint.desired_replicas)) for endpoint in endpoints),
    )


def _traffic(write: Exposition, endpoints: Sequence[Endpoint], labels: dict[int, str]) -> Iterator[str]:
    made = {endpoint.pk: endpoint.created_at for endpoint in endpoints}
    found = traffic_of(endpoints=made, window=WINDOW, at=timezone.now(), parts=()) if made else {}
    yield write.gauge(
        "fleetdeck_endpoint_requests_per_second",
        "Through all gateways over the last minute, the panel's own probes left out.",
        ((labels[pk], one.requests_per_second) for pk, one in found.items()),
    )


def _engines(write: Exposition, labels: dict[int, str]) -> Iterator[str]:
    replicas = list(Replica.objects.filter(ended_at=None, endpoint__in=labels).select_related("server").order_by("pk"))
    names = {one.pk: f"{labels[one.endpoint_id]},{_replica_labels(one)}" for one in replicas}
    yield write.gauge(
        "fleetdeck_replica_ready",
        "1 when it answers real requests.",
        ((names[one.pk], float(one.state == ReplicaState.READY)) for one in replicas),
    )
    yield write.gauge(
        "fleetdeck_replica_metrics_problem",
        "1 for what keeps its engine's metrics from being read.",
        (
            (f"{names[one.pk]},{labels_text(problem=str(one.metrics['problem']))}", 1.0)
            for one in replicas
            if one.metrics.get("problem")
        ),
    )
    latest = latest_for_replicas(replica_ids=list(names))
    oldest = timezone.now() - FRESH
    rows: list[tuple[str, Latest]] = [(names[pk], one) for pk, one in sorted(latest.items()) if one.at >= oldest]
    for metric in ENGINE_METRICS:
        values = ((label, one.values[metric.name]) for label, one in rows)
        yield write.gauge(f"fleetdeck_engine_{metric.name}", f"As the engine itself tells, in {metric.unit}.", values)


def _replica_labels(replica: Replica) -> str:
    family = str(replica.metrics.get("family", ""))
    return labels_text(replica=str(replica.pk), server=replica.server.name, engine=family)
