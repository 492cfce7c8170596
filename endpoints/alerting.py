"""What alerts know of endpoints and replicas: names, labels, hosts, when they had just started, which cards serve."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime  # noqa: TC003 (annotations of locals)
from typing import Final

from endpoints.enums import ReplicaState, Wanted
from endpoints.models import Endpoint, Replica, ReplicaGpu
from monitoring.alerts.subjects import Subject, register_subjects, register_uses

COLD_SECONDS: Final = 600.0


def endpoints(ids: Collection[int] | None) -> dict[int, Subject]:
    """Return endpoints that are not deleted. Two queries."""
    rows = Endpoint.objects.filter(deleted_at=None, deleting_at=None)
    if ids is not None:
        rows = rows.filter(pk__in=list(ids))
    hosts: defaultdict[int, set[int]] = defaultdict(set)
    ready: defaultdict[int, list[datetime]] = defaultdict(list)
    replicas = Replica.objects.filter(ended_at=None, wanted=Wanted.RUN, endpoint__deleted_at=None)
    for endpoint_id, server_id, state, ready_at in replicas.values_list(
        "endpoint_id", "server_id", "state", "ready_at"
    ):
        hosts[endpoint_id].add(server_id)
        if state == ReplicaState.READY and ready_at is not None:
            ready[endpoint_id].append(ready_at)
    found = {}
    for pk, name, project in rows.values_list("pk", "name", "project"):
        # As long as one replica is warm, a new one beside it is no excuse.
        cold = min(ready[pk]).timestamp() if ready[pk] else 0.0
        found[pk] = Subject(
            "endpoint", pk, name, {"project": project} if project else {}, tuple(sorted(hosts[pk])), endpoint=pk,
            cold_from=cold, cold_until=cold + COLD_SECONDS if cold else 0.0,
        )  # fmt: skip
    return found


def replicas(ids: Collection[int] | None) -> dict[int, Subject]:
    """Return replicas that have not ended. One query."""
    rows = Replica.objects.filter(ended_at=None).select_related("endpoint", "server")
    if ids is not None:
        rows = rows.filter(pk__in=list(ids))
    return {
        row.pk: Subject(
            "replica", row.pk, f"{row.endpoint.name} @ {row.server.name}",
            {"project": row.endpoint.project, "endpoint": row.endpoint.name}, (row.server_id,), endpoint=row.endpoint_id,
            is_busy=bool(row.running and row.running >= 1),
        )
        for row in rows
    }  # fmt: skip


def cards_used() -> Mapping[int, tuple[int, bool]]:
    """Return the endpoint that each card serves, and whether its replica has requests."""
    rows = ReplicaGpu.objects.filter(replica__ended_at=None)
    return {
        gpu_id: (endpoint_id, bool(running and running >= 1))
        for gpu_id, endpoint_id, running in rows.values_list("gpu_id", "replica__endpoint_id", "replica__running")
    }


def register_all() -> None:
    """Register what alerts ask for (once, when the app starts)."""
    register_subjects("endpoint", endpoints)
    register_subjects("replica", replicas)
    register_uses("gpu", cards_used)
