"""Bringing endpoints to what is wanted: read → plan (pure) → apply, one endpoint at a time under its row's lock."""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Max, Q

from endpoints.enums import Phase, ReplicaState, RolloutState, Wanted
from endpoints.lifecycle import Numbers, phase_of
from endpoints.models import Endpoint, Replica, Revision, Rollout
from endpoints.rollout import plan as planning
from endpoints.rollout.plan import Gate
from endpoints.services.gating import gate_begin, gate_of, gate_open
from endpoints.services.placing import placing_lock, room_for, serving_of, spot_find
from endpoints.services.replicas import replica_create, replica_end, replica_lose, replica_stop, replicas_drain
from endpoints.services.rollouts import rollout_end
from endpoints.services.routing import endpoint_reroute
from endpoints.services.telling import tell_endpoint
from fleet.enums import ServerState
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.events import event_write

# What waits for something that tells nobody (a free card, a server that falls silent) is looked at this often.
LOOK_AGAIN: Final = timedelta(seconds=5)
RECENT: Final = timedelta(hours=1)
_SILENT: Final = (ServerState.NOT_REPORTING, ServerState.UNREACHABLE)
# The machine that a replica ran on will not be heard of again: its server left, or waits for another machine.
_GONE: Final = (ServerState.RETIRED, ServerState.PENDING)


def endpoints_due(*, at: datetime) -> list[int]:
    """Return the ids of endpoints that somebody must look at: whose time it is, and of whose servers one is silent or gone.

    Who has waited longest comes first, so that cards go to those who asked first.
    """
    left = Replica.objects.filter(ended_at=None, server__state__in=(*_SILENT, *_GONE)).exclude(state=ReplicaState.LOST)
    due = Endpoint.objects.filter(Q(reconcile_at__lte=at) | Q(pk__in=left.values("endpoint_id")), deleted_at=None)
    return list(due.order_by("reconcile_at", "pk").values_list("pk", flat=True)[:500])


def endpoint_reconcile(*, endpoint_id: int) -> bool:
    """Take the steps that may be taken now about one endpoint; returns whether it was free to be looked at.

    Idempotent: asked again, it takes no step twice. Another process that is at it is left alone.
    """
    with transaction.atomic():
        endpoint = (
            Endpoint.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("active_revision", "target_revision")
            .filter(pk=endpoint_id, deleted_at=None)
            .first()
        )
        if endpoint is None:
            return False
        _take_steps(endpoint, now())
    return True


def _take_steps(endpoint: Endpoint, at: datetime) -> None:
    replicas = list(
        Replica.objects.filter(endpoint=endpoint, ended_at=None)
        .select_related("revision", "server__serving", "server__agent")
        .order_by("pk")
    )
    for replica in replicas:
        replica.endpoint = endpoint
    replicas = _buried(replicas, at)
    rollout = Rollout.objects.filter(endpoint=endpoint, ended_at=None).select_related("to_revision").first()
    placing_lock()
    decided = planning.plan(_view(endpoint, replicas, rollout, at), now=at)
    _apply(endpoint, decided, replicas, rollout, at)
    _note(endpoint, decided, at)


def _buried(replicas: list[Replica], at: datetime) -> list[Replica]:
    """End the replicas whose machine is gone for good; returns the others."""
    for replica in replicas:
        if replica.server.state in _GONE:
            replica_end(replica, at=at, state=ReplicaState.LOST)
    return [each for each in replicas if each.ended_at is None]


def _is_lost(replica: Replica, endpoint: Endpoint, at: datetime) -> bool:
    silent_for = at - replica.server.state_changed_at
    return replica.server.state in _SILENT and silent_for >= timedelta(seconds=endpoint.lost_after_seconds)


def _view(endpoint: Endpoint, replicas: list[Replica], rollout: Rollout | None, at: datetime) -> planning.EndpointView:
    revisions = {each.pk: each for each in (endpoint.active_revision, rollout and rollout.to_revision) if each}
    failed = Replica.objects.filter(
        endpoint=endpoint,
        state=ReplicaState.FAILED,
        state_changed_at__gt=at - RECENT,
        revision=endpoint.active_revision,
    )
    failed_at = failed.order_by("-state_changed_at").values_list("state_changed_at", flat=True).first()
    return planning.EndpointView(
        desired=endpoint.desired_replicas,
        active=endpoint.active_revision_id,
        replicas=[
            planning.ReplicaView(
                id=replica.pk,
                revision=replica.revision_id,
                created_at=replica.created_at,
                is_run=replica.wanted == Wanted.RUN,
                is_ready=replica.state == ReplicaState.READY,
                is_gated=replica.is_gated,
                is_failed=replica.state == ReplicaState.FAILED,
                is_lost=replica.state == ReplicaState.LOST or _is_lost(replica, endpoint, at),
                is_leaving=serving_of(replica.server).is_evacuating,
                reason=replica.reason,
            )
            for replica in replicas
        ],
        room={pk: room_for(endpoint, revision) for pk, revision in revisions.items()},
        rollout=_rollout_view(rollout) if rollout is not None else None,
        is_deleting=endpoint.deleting_at is not None,
        failures=failed.count(),
        failed_at=failed_at,
        freed_at=_freed_at(endpoint, at),
    )


def _freed_at(endpoint: Endpoint, at: datetime) -> datetime | None:
    """Return when one of its replicas ended last and gave its cards back, within the time in which that is of interest."""
    ended = Replica.objects.filter(endpoint=endpoint, ended_at__gt=at - planning.SETTLING)
    last: datetime | None = ended.exclude(state=ReplicaState.LOST).aggregate(last=Max("ended_at"))["last"]
    return last


def _rollout_view(rollout: Rollout) -> planning.RolloutView:
    is_paused = rollout.state == RolloutState.PAUSED
    return planning.RolloutView(rollout.to_revision_id, rollout.deadline_at, is_paused=is_paused, gate=gate_of(rollout))


def _apply(
    endpoint: Endpoint, decided: planning.Plan, replicas: list[Replica], rollout: Rollout | None, at: datetime
) -> None:
    by_id = {replica.pk: replica for replica in replicas}
    for action in decided.actions:
        match action:
            case planning.Place(revision_id):
                _place(endpoint, revision_id, rollout, at)
            case planning.Drain(replica_id):
                replicas_drain([by_id[replica_id]], at=at)
            case planning.Stop(replica_id):
                replica_stop(by_id[replica_id], at=at)
            case planning.Lose(replica_id):
                replica_lose(by_id[replica_id], at=at)
            case planning.Test():
                assert rollout is not None  # noqa: S101  # planned from it
                _test(endpoint, rollout, replicas, at)
            case planning.Open():
                gate_open(replicas, at=at)
            case planning.Finish():
                assert rollout is not None  # noqa: S101  # planned from it
                rollout_end(endpoint, rollout, RolloutState.SUCCEEDED, at=at)
            case planning.GiveUp(reason, replica_id):
                assert rollout is not None  # noqa: S101  # planned from it
                _give_up(endpoint, rollout, reason, by_id.get(replica_id or 0), at)
            case planning.Remove():
                endpoint.deleted_at = at
                endpoint.save(update_fields=["deleted_at"])
                endpoint_reroute(endpoint)


def _test(endpoint: Endpoint, rollout: Rollout, replicas: list[Replica], at: datetime) -> None:
    """Begin the gate's test; one that cannot be begun at all is a gate that failed."""
    new = [each for each in replicas if each.revision_id == rollout.to_revision_id and each.wanted == Wanted.RUN]
    why = gate_begin(endpoint, rollout, new)
    if why:
        to = RolloutState.RETURNED if rollout.from_revision_id else RolloutState.FAILED
        rollout_end(endpoint, rollout, to, at=at, reason="gate_not_begun", detail=why)


def _place(endpoint: Endpoint, revision_id: int, rollout: Rollout | None, at: datetime) -> None:
    revision = Revision.objects.get(pk=revision_id)
    spot = spot_find(endpoint, revision)
    if spot is not None:
        is_gated = rollout is not None and rollout.to_revision_id == revision_id and gate_of(rollout) is not Gate.OPEN
        replica_create(endpoint=endpoint, revision=revision, spot=spot, at=at, is_gated=is_gated)


def _give_up(endpoint: Endpoint, rollout: Rollout, reason: str, replica: Replica | None, at: datetime) -> None:
    to = RolloutState.RETURNED if rollout.from_revision_id else RolloutState.FAILED
    line = replica.detail if replica is not None else ""
    rollout_end(endpoint, rollout, to, at=at, reason=reason, detail=line)


def _note(endpoint: Endpoint, decided: planning.Plan, at: datetime) -> None:
    """Keep the derived phase, and when to look again."""
    open_replicas = list(Replica.objects.filter(endpoint=endpoint, ended_at=None))
    running = [each for each in open_replicas if each.wanted == Wanted.RUN and each.state != ReplicaState.FAILED]
    ready = sum(each.state == ReplicaState.READY and not each.is_gated for each in running)
    rollout = Rollout.objects.filter(endpoint=endpoint).order_by("-pk").first()
    is_open = rollout is not None and rollout.ended_at is None
    phase, reason = phase_of(
        Numbers(endpoint.desired_replicas, ready, len(running) - ready),
        is_deleting=endpoint.deleting_at is not None,
        has_active=endpoint.active_revision_id is not None,
        rollout=RolloutState(rollout.state) if rollout is not None and is_open else None,
        has_failed=rollout is not None and rollout.state == RolloutState.FAILED,
        blocked=decided.blocked,
    )
    is_leaving = any(each not in running and each.state != ReplicaState.LOST for each in open_replicas)
    is_settled = phase in {Phase.HEALTHY, Phase.SCALED_TO_ZERO, Phase.FAILED} and not is_leaving
    again = min(filter(None, [decided.again_at, at + LOOK_AGAIN])) if not is_settled or decided.actions else None
    changes = {"phase": phase, "phase_reason": reason, "reconcile_at": again if endpoint.deleted_at is None else None}
    if phase != endpoint.phase:
        changes["phase_changed_at"] = at
        _write_phase(endpoint, phase, reason)
    Endpoint.objects.filter(pk=endpoint.pk).update(**changes)
    tell_endpoint(endpoint)


def _write_phase(endpoint: Endpoint, phase: Phase, reason: str) -> None:
    bad = {Phase.UNAVAILABLE: Severity.CRITICAL, Phase.FAILED: Severity.CRITICAL, Phase.DEGRADED: Severity.WARNING}
    event_write(
        kind="endpoint.phase_changed",
        severity=bad.get(phase, Severity.INFO),
        subject_kind="endpoint",
        subject_id=endpoint.pk,
        subject_name=endpoint.name,
        data={"from": str(endpoint.phase), "to": str(phase), "reason": reason},
    )
