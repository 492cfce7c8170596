"""What agents say of replicas: kept, and followed by what it means for gateways and endpoints. Bounded, and only of their own."""

import math
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from endpoints.enums import ReplicaHealth, ReplicaState, Wanted
from endpoints.models import Replica, ReplicaLog, Rollout, ServingHost
from endpoints.services.placing import placing_lock, port_elsewhere
from endpoints.services.replicas import replica_change
from endpoints.services.telling import tell_endpoint
from endpoints.services.waking import endpoint_wake, endpoints_lock
from fleet.agent import orders
from fleet.selectors.live import iso
from fleet.services.agents import AgentIdentity
from fleet.services.cleaning import clean_text
from panel.core.clock import now
from panel.core.errors import InvalidInput, TooLarge
from panel.core.live import publish_later

LOG_BYTES_OF_A_GENERATION: Final = 2 * 1024 * 1024
GENERATIONS_KEPT: Final = 3
PORT_TAKEN: Final = "port_in_use"
# What moves all the time, and is nobody's business but the pages'.
QUIET: Final = ("observed_at", "running", "waiting", "kv_cache_percent", "answered_ms")


def replicas_report(*, identity: AgentIdentity, report: orders.ReplicasReport) -> None:
    """Take what an agent says of the replicas of its server; an older message than the last one changes nothing.

    A replica that is ordered and missing from a message that follows the present orders has not been begun, or is gone.
    Raises InvalidInput or TooLarge.
    """
    if len(report.replicas) > orders.LIMITS["replicas"]:
        raise TooLarge(_("No server has so many replicas."))
    run_id = _run_id(report.run_id)
    at = now()
    with transaction.atomic():
        if not _is_news(identity.server_id, run_id, report, at):
            return
        mine = Replica.objects.filter(server_id=identity.server_id, ended_at=None)
        endpoints_lock(set(mine.values_list("endpoint_id", flat=True)))
        found = mine.select_related("endpoint", "revision", "server__agent").order_by("pk")
        known = {replica.pk: replica for replica in found}
        told = {status.id: status for status in report.replicas if status.id in known}
        touched: set[int] = set()
        before = {pk: _figures(replica) for pk, replica in known.items()}
        for pk, replica in known.items():
            if _take(replica, told.get(pk), report, at):
                touched.add(replica.endpoint_id)
        Replica.objects.bulk_update([known[pk] for pk in told], QUIET)
        news = {
            replica.endpoint_id: replica.endpoint for pk, replica in known.items() if _figures(replica) != before[pk]
        }
        for endpoint in news.values():
            tell_endpoint(endpoint)
        endpoint_wake(touched, at=at)


def _run_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(_("`run_id` is a UUID.")) from None


def _is_news(server_id: int, run_id: UUID, report: orders.ReplicasReport, at: datetime) -> bool:
    """Keep what the agent can run, and say whether this message is newer than the last."""
    serving, _made = ServingHost.objects.select_for_update().get_or_create(server_id=server_id)
    if serving.run_id == run_id and report.seq <= serving.seq:
        return False
    serving.run_id, serving.seq, serving.reported_at = run_id, report.seq, at
    serving.runtimes = {key: clean_text(value, 200) for key, value in report.runtimes.items() if len(key) <= 16}
    serving.unusable = {key: clean_text(value, 200) for key, value in report.unusable.items() if len(key) <= 16}
    serving.save(update_fields=["run_id", "seq", "reported_at", "runtimes", "unusable"])
    return True


def _take(replica: Replica, status: orders.ReplicaStatus | None, report: orders.ReplicasReport, at: datetime) -> bool:
    """Keep what is said of one replica; says whether its endpoint must be looked at."""
    if status is None:
        return _gone(replica, report, at)
    if status.generation < replica.generation and replica.wanted == Wanted.RUN:
        return False  # of what ran before; the order to start anew is under way
    before = (replica.state, replica.health)
    changes = _observed(replica, status, at)
    if replica.wanted == Wanted.STOP and status.state not in {"stopped", "failed"}:
        changes.pop("state")  # lost or called off: what it still does matters to nobody but its agent
    if replica.wanted != Wanted.RUN and status.state in {"stopped", "failed"}:
        changes |= _ended(replica, at)
    if replica.wanted == Wanted.RUN and status.reason == PORT_TAKEN:
        changes |= _elsewhere(replica)
    _keep(replica, changes, at)
    if replica.state == ReplicaState.READY and before[0] != ReplicaState.READY:
        _extend_rollout(replica, at)
    return (replica.state, replica.health) != before or replica.ended_at is not None


def _figures(replica: Replica) -> tuple[Any, ...]:
    """Return what pages show of a replica and a report may change."""
    shown = ("version", *(name for name in QUIET if name != "observed_at"))
    return tuple(getattr(replica, name) for name in shown)


def _keep(replica: Replica, changes: dict[str, Any], at: datetime) -> None:
    """Change what changed; figures that move all the time are set here and written for all replicas at once."""
    for name in QUIET:
        setattr(replica, name, changes.pop(name))
    loud = {name: value for name, value in changes.items() if getattr(replica, name) != value}
    if loud:
        replica_change(replica, at=at, **loud)


def _elsewhere(replica: Replica) -> dict[str, Any]:
    """Start a replica anew on another port of its server, if there is one."""
    placing_lock()
    port = port_elsewhere(replica)
    return {"port": port, "generation": replica.generation + 1} if port is not None else {}


def _gone(replica: Replica, report: orders.ReplicasReport, at: datetime) -> bool:
    """A replica that its agent does not name: one that was to stop has stopped; one that is to run is not begun yet."""
    if replica.wanted == Wanted.RUN or report.orders_version < replica.server.agent.assignments_version:
        return False
    replica_change(replica, at=at, **_ended(replica, at))
    return True


def _ended(replica: Replica, at: datetime) -> dict[str, Any]:
    """Return the end of a replica; how it came to it stays visible."""
    is_told = replica.state in {ReplicaState.FAILED, ReplicaState.LOST}
    kept = {"state": replica.state, "reason": replica.reason, "detail": replica.detail} if is_told else {}
    return {"state": ReplicaState.STOPPED, **kept, "ended_at": at}


def _observed(replica: Replica, status: orders.ReplicaStatus, at: datetime) -> dict[str, Any]:
    state = ReplicaState(status.state)
    fields: dict[str, Any] = {
        "state": state,
        "health": ReplicaHealth(status.health),
        "reason": clean_text(status.reason, 32),
        "detail": clean_text(status.detail, 500),
        "percent": status.percent if status.percent is not None and 0 <= status.percent <= 100 else None,
        "restarts": min(max(status.restarts, 0), 2**31 - 1),
        "exit_code": status.exit_code if status.exit_code is not None and abs(status.exit_code) < 2**31 else None,
        "handle": clean_text(status.handle, 100),
        "running": _figure(status.running),
        "waiting": _figure(status.waiting),
        "kv_cache_percent": _figure(status.kv_cache_percent),
        "answered_ms": _figure(status.answered_ms),
        "observed_at": at,
        "metrics": _metrics(status) or replica.metrics,
    }
    if state == ReplicaState.READY and replica.ready_at is None:
        fields["ready_at"] = at
    if str(state) not in replica.steps:
        fields["steps"] = {**replica.steps, str(state): at.isoformat()}
    return fields


def _metrics(status: orders.ReplicaStatus) -> dict[str, Any]:
    """Return what is known of its page of metrics, {} where nothing is said of one (an agent that does not read it)."""
    if not status.metrics_family and not status.metrics_problem:
        return {}
    return {
        "family": clean_text(status.metrics_family, 16),
        "missing": [clean_text(name, 32) for name in status.metrics_missing],
        "broken": [clean_text(name, 32) for name in status.metrics_broken],
        "problem": clean_text(status.metrics_problem, 16),
    }


def _figure(value: float | None) -> float | None:
    """Return a figure that can be shown, None for one that cannot be."""
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def _extend_rollout(replica: Replica, at: datetime) -> None:
    """Give the rollout's next replica the whole time again."""
    limit = timedelta(seconds=replica.endpoint.rollout_deadline_seconds)
    Rollout.objects.filter(endpoint_id=replica.endpoint_id, ended_at=None, to_revision_id=replica.revision_id).update(
        deadline_at=at + limit
    )


def logs_report(*, identity: AgentIdentity, report: orders.LogsReport) -> None:
    """Keep lines of this server's replicas; a piece said twice is kept once, and of a generation at most 2 MB, the newest."""
    if len(report.chunks) > orders.LIMITS["log_chunks"]:
        raise TooLarge(_("Those are more pieces of logs than one message may hold."))
    at = now()
    with transaction.atomic():
        known = set(
            Replica.objects.filter(server_id=identity.server_id, pk__in={each.replica for each in report.chunks})
            .values_list("pk", flat=True)
        )  # fmt: skip
        rows = [
            ReplicaLog(
                replica_id=chunk.replica,
                generation=chunk.generation,
                offset=chunk.offset,
                text=chunk.text.replace("\0", ""),
                skipped_bytes=chunk.skipped_bytes,
                received_at=at,
            )
            for chunk in report.chunks
            if chunk.replica in known and 0 <= chunk.generation < 2**31 and 0 <= chunk.offset < 2**62
        ]
        ReplicaLog.objects.bulk_create(rows, ignore_conflicts=True)
        for row in rows:
            key = f"{row.generation}:{row.offset}"
            piece = {"text": row.text, "skipped": row.skipped_bytes, "at": iso(at)}
            publish_later(f"replica.{row.replica_id}", {"log": {key: piece}})
        for replica_id in {row.replica_id for row in rows}:
            _forget_lines(replica_id)


def _forget_lines(replica_id: int) -> None:
    """Keep the newest generations of a replica, and the newest lines of each."""
    generations = ReplicaLog.objects.filter(replica_id=replica_id).values_list("generation", flat=True).distinct()
    kept = sorted(generations, reverse=True)[:GENERATIONS_KEPT]
    ReplicaLog.objects.filter(replica_id=replica_id).exclude(generation__in=kept).delete()
    for generation in kept[:1]:
        mine = ReplicaLog.objects.filter(replica_id=replica_id, generation=generation)
        newest = mine.order_by("-offset").values_list("offset", flat=True).first() or 0
        mine.filter(offset__lt=newest - LOG_BYTES_OF_A_GENERATION).delete()
