"""The only place that assigns a state: checks the table, compares and swaps on `version`, writes the event."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.utils.translation import gettext as _

from fleet.enums import GpuState, ServerState
from fleet.lifecycle import GPU_TRANSITIONS, SERVER_TRANSITIONS
from fleet.models import Gpu, Server
from fleet.services.bulk import rows_update
from panel.accounts.audit import Actor
from panel.core.enums import Severity
from panel.core.errors import Conflict, Stale
from panel.core.events import event_write
from panel.core.models import Event

# Past this many in an hour, a server's cards get one event a report.
GPU_EVENTS_PER_HOUR: Final = 500

_STATE_FIELDS: Final = ("state", "state_reason", "state_changed_at")
_SERVER_SEVERITY: Final = {
    ServerState.DEGRADED: Severity.WARNING,
    ServerState.NOT_REPORTING: Severity.WARNING,
    ServerState.UNREACHABLE: Severity.WARNING,
}
_GPU_SEVERITY: Final = {
    GpuState.OK: Severity.INFO,
    GpuState.LOST: Severity.CRITICAL,
    GpuState.MISSING: Severity.CRITICAL,
    GpuState.DEGRADED: Severity.WARNING,
    GpuState.UNKNOWN: Severity.WARNING,
}


@dataclass(frozen=True, slots=True)
class ServerChange:
    """One server's way to another state; the same state with another reason is no change and tells nobody."""

    server: Server
    to: ServerState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GpuChange:
    """One card's way to another state."""

    gpu: Gpu
    to: GpuState
    reason: str = ""


def _store(rows: Sequence[Server] | Sequence[Gpu]) -> None:
    """Compare and swap all rows at once. Raises Stale when another process changed one of them first."""
    if rows_update(rows, _STATE_FIELDS, guard_version=True) != len(rows):
        raise Stale(_("Somebody else changed this first. Look at it again and repeat."))
    for row in rows:
        row.version += 1


def servers_transition(changes: Sequence[ServerChange], *, actor: Actor, at: datetime) -> None:
    """Change the states of servers, in the caller's transaction. Raises Conflict (not allowed) or Stale."""
    moved: list[tuple[Server, ServerState]] = []
    for change in changes:
        server, before = change.server, ServerState(change.server.state)
        if change.to != before:
            if change.to not in SERVER_TRANSITIONS[before]:
                raise Conflict(
                    _("Server %(name)s is “%(before)s” and cannot become “%(to)s”.")
                    % {"name": server.name, "before": before.label, "to": change.to.label},
                    code="transition_refused",
                )
            moved.append((server, before))
            server.state, server.state_changed_at = change.to, at
        server.state_reason = change.reason
    _store([change.server for change in changes])
    for server, before in moved:
        event_write(
            kind="server.state_changed",
            severity=_SERVER_SEVERITY.get(ServerState(server.state), Severity.INFO),
            subject_kind="server",
            subject_id=server.pk,
            subject_name=server.name,
            server_id=server.pk,
            data={"from": str(before), "to": str(server.state), "reason": server.state_reason, "by": actor.name},
        )


def server_transition(*, server: Server, to: ServerState, reason: str, actor: Actor, at: datetime) -> None:
    """Change one server's state; see `servers_transition`."""
    servers_transition([ServerChange(server, to, reason)], actor=actor, at=at)


def gpus_transition(
    changes: Sequence[GpuChange], *, server_name: str, actor: Actor, at: datetime, is_quiet: bool = False
) -> None:
    """Change the states of one server's cards, in the caller's transaction. Raises Stale.

    is_quiet: write no events, because one about the server says the same (it fell silent, or speaks again).
    """
    moved: list[tuple[Gpu, GpuState]] = []
    for change in changes:
        gpu, before = change.gpu, GpuState(change.gpu.state)
        if change.to != before:
            if change.to not in GPU_TRANSITIONS[before]:
                raise Conflict(_("A card cannot go from %(before)s to %(to)s.") % {"before": before, "to": change.to})
            moved.append((gpu, before))
            gpu.state, gpu.state_changed_at = change.to, at
        gpu.state_reason = change.reason
    _store([change.gpu for change in changes])
    if is_quiet:
        return
    if _is_flood(moved, at):
        _write_summary(moved, server_name, actor)
        return
    for gpu, before in moved:
        event_write(
            kind="gpu.state_changed",
            severity=_GPU_SEVERITY[GpuState(gpu.state)],
            subject_kind="gpu",
            subject_id=gpu.pk,
            subject_name=gpu_title(gpu, server_name),
            server_id=gpu.server_id,
            data={
                "from": str(before),
                "to": str(gpu.state),
                "reason": gpu.state_reason,
                "uuid": gpu.uuid,
                "index": gpu.index,
                "by": actor.name,
            },
        )


def _is_flood(moved: Sequence[tuple[Gpu, GpuState]], at: datetime) -> bool:
    """Say whether a server's cards change so often that an event each would only fill the table: it may be lying."""
    if not moved:
        return False
    recent = Event.objects.filter(
        server_id=moved[0][0].server_id, kind="gpu.state_changed", at__gt=at - timedelta(hours=1)
    )
    return recent.count() + len(moved) > GPU_EVENTS_PER_HOUR


def _write_summary(moved: Sequence[tuple[Gpu, GpuState]], server_name: str, actor: Actor) -> None:
    states = Counter(str(gpu.state) for gpu, _before in moved)
    event_write(
        kind="gpu.states_changed",
        severity=max((_GPU_SEVERITY[GpuState(gpu.state)] for gpu, _before in moved), key=list(Severity).index),
        subject_kind="server",
        subject_id=moved[0][0].server_id,
        subject_name=server_name,
        server_id=moved[0][0].server_id,
        data={"count": len(moved), "states": dict(states), "by": actor.name},
    )


def gpu_title(gpu: Gpu, server_name: str) -> str:
    """Return how a card is named in events: server, index (a label), short UUID."""
    index = f"#{gpu.index} " if gpu.index is not None else ""
    return f"{server_name} {index}{gpu.uuid.removeprefix('GPU-')[:8]}"
