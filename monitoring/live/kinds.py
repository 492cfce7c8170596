"""The topics of the fleet: `fleet`, `server.<id>`, `gpu.<id>`, `join.<id>`, `job.<id>`, `leases`, `operation.<id>`, …"""

from collections import defaultdict
from typing import Any

from fleet import selectors as fleet
from fleet.models import Drift, Gpu, Job, JoinToken, Lease, Operation, Server
from fleet.services.telling_leases import drift_live, lease_live, operation_live
from monitoring.live.frames import gpu_entry, gpu_summary, host_entry
from monitoring.live.topics import Topic, register
from monitoring.probing.lists import newest_results
from monitoring.probing.live import TOPIC as PROBES_TOPIC
from monitoring.selectors import latest_for_gpus, latest_for_servers
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.models import User
from panel.core.clock import now
from panel.core.errors import NotFound
from panel.core.events import TOPIC as EVENTS_TOPIC
from panel.core.events import event_facts
from panel.core.live import LiveData
from panel.core.models import Event

RECENT_EVENTS = 20


def _may_view_fleet(user: User, _identifier: int) -> bool:
    return has_capability(user.role, Capability.FLEET_VIEW)


def _may_view_server(user: User, identifier: int) -> bool:
    return _may_view_fleet(user, 0) and Server.objects.filter(pk=identifier).exists()


def _may_view_gpu(user: User, identifier: int) -> bool:
    return _may_view_fleet(user, 0) and Gpu.objects.filter(pk=identifier).exists()


def _may_view_operation(user: User, identifier: int) -> bool:
    return _may_view_fleet(user, 0) and Operation.objects.filter(pk=identifier).exists()


def _may_view_job(user: User, identifier: int) -> bool:
    return _may_view_fleet(user, 0) and Job.objects.filter(pk=identifier).exists()


def _may_view_events(user: User, _identifier: int) -> bool:
    return has_capability(user.role, Capability.EVENTS_VIEW)


def _may_view_join(user: User, identifier: int) -> bool:
    may = has_capability(user.role, Capability.JOIN_TOKENS_MANAGE)
    return may and JoinToken.objects.filter(pk=identifier).exists()


def _gpu_entries(gpus: list[Gpu], entry: Any) -> dict[str, Any]:
    latest = latest_for_gpus(gpu_ids=[gpu.pk for gpu in gpus])
    return {str(gpu.pk): entry(gpu, latest.get(gpu.pk)) for gpu in gpus}


def fleet_snapshot(_identifier: int) -> LiveData:
    """Return every server that is not retired and every GPU of theirs, with the few numbers that lists show."""
    servers = list(Server.objects.filter(retired_at=None).select_related("agent"))
    gpus = list(Gpu.objects.filter(server__retired_at=None, removed_at=None))
    cards: defaultdict[int, list[Gpu]] = defaultdict(list)
    for gpu in gpus:
        cards[gpu.server_id].append(gpu)
    return {
        "servers": {str(server.pk): fleet.server_live(server, gpus=cards[server.pk]) for server in servers},
        "gpus": _gpu_entries(gpus, gpu_summary),
    }


def server_snapshot(identifier: int) -> LiveData:
    """Return one server with all readings of its GPUs and of the host."""
    server = Server.objects.select_related("agent").filter(pk=identifier).first()
    if server is None:
        raise NotFound("This server does not exist any more.")
    gpus = list(Gpu.objects.filter(server=server, removed_at=None))
    host = latest_for_servers(server_ids=[server.pk]).get(server.pk)
    return {
        "server": {str(server.pk): fleet.server_live(server, gpus=gpus)},
        "gpus": _gpu_entries(gpus, gpu_entry),
        "host": {str(server.pk): host_entry(host)} if host is not None else {},
    }


def gpu_snapshot(identifier: int) -> LiveData:
    """Return one GPU with all its readings."""
    gpus = list(Gpu.objects.filter(pk=identifier))
    if not gpus:
        raise NotFound("This GPU does not exist any more.")
    return {"gpus": _gpu_entries(gpus, gpu_entry)}


def join_snapshot(identifier: int) -> LiveData:
    """Return how far the machine that uses this token has come."""
    token = JoinToken.objects.select_related("server").filter(pk=identifier).first()
    if token is None:
        raise NotFound("This join token does not exist any more.")
    return {"join": {str(token.pk): fleet.join_live(token)}}


def events_snapshot(_identifier: int) -> LiveData:
    """Return the newest events, oldest first."""
    newest = Event.objects.order_by("-pk")[:RECENT_EVENTS]
    return {"events": {str(event.pk): event_facts(event) for event in reversed(newest)}}


def leases_snapshot(_identifier: int) -> LiveData:
    """Return every lease that is still billed and every operation that is on its way."""
    leases = Lease.objects.filter(ended_at=None)
    operations = Operation.objects.filter(ended_at=None)
    return {
        "leases": {str(lease.pk): lease_live(lease) for lease in leases},
        "operations": {str(operation.pk): operation_live(operation) for operation in operations},
    }


def drift_snapshot(_identifier: int) -> LiveData:
    """Return every difference that is not settled, also those that are ignored for a time."""
    drifts = Drift.objects.filter(resolved_at=None)
    return {"drifts": {str(drift.pk): drift_live(drift) for drift in drifts}}


def operation_snapshot(identifier: int) -> LiveData:
    """Return one operation with its steps."""
    operation = Operation.objects.filter(pk=identifier).first()
    if operation is None:
        raise NotFound("This operation does not exist any more.")
    return {"operations": {str(operation.pk): operation_live(operation)}}


def job_snapshot(identifier: int) -> LiveData:
    """Return how far one job has come."""
    job = Job.objects.defer("result", "context").filter(pk=identifier).first()
    if job is None:
        raise NotFound("This job does not exist any more.")
    return {"jobs": {str(job.pk): fleet.job_live(job)}}


def probes_snapshot(_identifier: int) -> LiveData:
    """Return the newest result of each probe of the last minutes."""
    return {PROBES_TOPIC: dict(newest_results(at=now()))}


def _gpus_server(identifier: int) -> int | None:
    return Gpu.objects.filter(pk=identifier).values_list("server_id", flat=True).first()


def register_all() -> None:
    """Register the topics of the fleet (once, when the app starts)."""
    register(Topic("fleet", _may_view_fleet, fleet_snapshot, interval_seconds=0.5, has_id=False))
    register(Topic("server", _may_view_server, server_snapshot, watches=lambda identifier: identifier))
    register(Topic("gpu", _may_view_gpu, gpu_snapshot, watches=_gpus_server))
    register(Topic("join", _may_view_join, join_snapshot))
    register(Topic("leases", _may_view_fleet, leases_snapshot, has_id=False))
    register(Topic("operation", _may_view_operation, operation_snapshot))
    register(Topic("drift", _may_view_fleet, drift_snapshot, has_id=False))
    register(Topic("job", _may_view_job, job_snapshot))
    register(Topic(PROBES_TOPIC, _may_view_fleet, probes_snapshot, interval_seconds=1.0, has_id=False))
    register(Topic(EVENTS_TOPIC, _may_view_events, events_snapshot, has_id=False))
