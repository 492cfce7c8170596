"""The only place that makes, changes and ends replicas: each change is compared and swapped, told and written down."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext as _

from endpoints.enums import ReplicaState, Wanted
from endpoints.models import Endpoint, Replica, ReplicaGpu, Revision
from endpoints.services.placing import Spot
from endpoints.services.routing import endpoint_reroute
from fleet.services.telling import assignments_change
from panel.core.enums import Severity
from panel.core.errors import Stale
from panel.core.events import event_write

_SEVERITY: Final = {
    ReplicaState.FAILED: Severity.WARNING,
    ReplicaState.LOST: Severity.WARNING,
    ReplicaState.NOT_READY: Severity.WARNING,
}
# Ways between these are told by the page alone; an event each would hide the others.
_QUIET: Final = frozenset({ReplicaState.PULLING, ReplicaState.STARTING, ReplicaState.DRAINING})


def replica_create(
    *, endpoint: Endpoint, revision: Revision, spot: Spot, at: datetime, is_gated: bool = False
) -> Replica:
    """Make a replica at a place, in the caller's transaction and under `placing_lock`; its agent hears of it."""
    replica = Replica.objects.create(
        endpoint=endpoint,
        revision=revision,
        server=spot.server,
        port=spot.port,
        runtime=revision.runtime,
        is_gated=is_gated,
        state_changed_at=at,
        created_at=at,
        steps={"placed": at.isoformat()},
    )
    ReplicaGpu.objects.bulk_create([ReplicaGpu(replica=replica, gpu=gpu) for gpu in spot.gpus])
    _write_event(replica, "replica.placed", Severity.INFO, gpus=[gpu.index for gpu in spot.gpus])
    assignments_change([spot.server.pk])
    return replica


def replica_change(replica: Replica, *, at: datetime, **changes: Any) -> None:
    """Change a replica's columns in the caller's transaction; gateways and its agent hear what concerns them.

    Raises Stale when another process changed it first. A change of `state` is written down; `ended_at` frees its cards.
    """
    before_state, before_wanted = ReplicaState(replica.state), Wanted(replica.wanted)
    was_serving = is_serving(replica)
    to = ReplicaState(changes.get("state", before_state))
    if to != before_state:
        changes["state_changed_at"] = at
    updated = Replica.objects.filter(pk=replica.pk, version=replica.version).update(
        **changes, version=replica.version + 1
    )
    if updated != 1:
        raise Stale(_("Somebody else changed this first. Look at it again and repeat."))
    for name, value in {**changes, "version": replica.version + 1}.items():
        setattr(replica, name, value)
    if replica.ended_at is not None:
        ReplicaGpu.objects.filter(replica=replica).delete()
    if is_serving(replica) != was_serving:
        endpoint_reroute(replica.endpoint)
    if before_wanted != replica.wanted or "generation" in changes or replica.ended_at is not None:
        assignments_change([replica.server_id])
    if to != before_state and to not in _QUIET:
        _write_event(replica, f"replica.{to}", _SEVERITY.get(to, Severity.INFO), reason=replica.reason)


def is_serving(replica: Replica) -> bool:
    """Say whether gateways send requests to it; the same as `routing.routed`."""
    is_wanted = replica.ended_at is None and replica.wanted == Wanted.RUN
    return is_wanted and replica.state == ReplicaState.READY and not replica.is_gated


def replicas_drain(replicas: Iterable[Replica], *, at: datetime) -> None:
    """Send these nothing new; their agents stop them when they have finished."""
    for replica in replicas:
        replica_change(replica, at=at, wanted=Wanted.DRAIN, drain_began_at=at)


def replica_stop(replica: Replica, *, at: datetime) -> None:
    """Have a replica stopped without waiting for what it works on."""
    replica_change(replica, at=at, wanted=Wanted.STOP)


def replica_lose(replica: Replica, *, at: datetime) -> None:
    """Count on a replica no more. Its cards stay its own until its server says that it has stopped, or is retired."""
    replica_change(replica, at=at, wanted=Wanted.STOP, state=ReplicaState.LOST, reason="server_silent")


def replica_end(replica: Replica, *, at: datetime, state: ReplicaState = ReplicaState.STOPPED) -> None:
    """Note that nothing of a replica runs any more."""
    replica_change(replica, at=at, state=state, ended_at=at)


def _write_event(replica: Replica, kind: str, severity: Severity, **data: Any) -> None:
    event_write(
        kind=kind,
        severity=severity,
        subject_kind="endpoint",
        subject_id=replica.endpoint_id,
        subject_name=replica.endpoint.name,
        server_id=replica.server_id,
        data={
            "replica": replica.pk,
            "revision": replica.revision.number,
            "server": replica.server.name,
            "detail": replica.detail,
            **data,
        },
    )
