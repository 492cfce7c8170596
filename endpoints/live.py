"""The topics of endpoints: `endpoints`, `endpoint.<id>`, `replica.<id>`."""

from endpoints.models import Endpoint, Replica
from endpoints.selectors import endpoint_live, endpoints_live, replica_live, replica_log
from fleet.selectors.live import iso
from monitoring.live.topics import Topic, register
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.models import User
from panel.core.errors import NotFound
from panel.core.live import LiveData

LOG_CHARACTERS = 65_536


def _may_view(user: User, _identifier: int) -> bool:
    return has_capability(user.role, Capability.FLEET_VIEW)


def _may_view_endpoint(user: User, identifier: int) -> bool:
    return _may_view(user, 0) and Endpoint.objects.filter(pk=identifier).exists()


def _may_view_replica(user: User, identifier: int) -> bool:
    return _may_view(user, 0) and Replica.objects.filter(pk=identifier).exists()


def endpoints_snapshot(_identifier: int) -> LiveData:
    """Return every endpoint with its numbers. Three queries however many."""
    endpoints = list(Endpoint.objects.filter(deleted_at=None).select_related("active_revision", "target_revision"))
    return {"endpoints": {str(pk): live["endpoint"] for pk, live in endpoints_live(endpoints).items()}}


def endpoint_snapshot(identifier: int) -> LiveData:
    """Return one endpoint with its open replicas."""
    found = Endpoint.objects.select_related("active_revision", "target_revision").filter(pk=identifier).first()
    if found is None:
        raise NotFound("This endpoint does not exist any more.")
    live = endpoint_live(found)
    return {"endpoint": {str(identifier): live["endpoint"]}, "replicas": live["replicas"]}


def replica_snapshot(identifier: int) -> LiveData:
    """Return one replica with the end of its log."""
    replica = Replica.objects.select_related("server", "revision").filter(pk=identifier).first()
    if replica is None:
        raise NotFound("This replica does not exist any more.")
    pieces: dict[str, dict[str, object]] = {}
    size = 0
    for piece in replica_log(replica=identifier).reverse()[:200]:
        size += len(piece.text)
        if size > LOG_CHARACTERS and pieces:
            break
        pieces[f"{piece.generation}:{piece.offset}"] = {
            "text": piece.text,
            "skipped": piece.skipped_bytes,
            "at": iso(piece.received_at),
        }
    return {"replicas": {str(identifier): replica_live(replica)}, "log": dict(reversed(pieces.items()))}


def register_all() -> None:
    """Register the topics of endpoints (once, when the app starts)."""
    register(Topic("endpoints", _may_view, endpoints_snapshot, has_id=False))
    register(Topic("endpoint", _may_view_endpoint, endpoint_snapshot))
    register(Topic("replica", _may_view_replica, replica_snapshot))
