"""What a server's cards and faults add up to: its gpu_health, and whether it is ready or degraded."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from fleet.enums import DriverState, GpuState, ServerState
from fleet.lifecycle import OBSERVED_STATES, gpu_health_of, server_settled_state, silent_after_seconds, worst_gpu_health
from fleet.models import Gpu, GpuFault, Server
from fleet.services.transitions import server_transition
from panel.accounts.audit import Actor
from panel.core.enums import Severity

# A fault that has not repeated for this long is over; the next one counts as a new one.
FAULT_QUIET: Final = timedelta(minutes=10)

OpenFaults = Mapping[int | None, Severity]


def open_faults(*, server_ids: Collection[int], at: datetime) -> dict[int, dict[int | None, Severity]]:
    """Return server → card (None: no known card) → the worst severity of faults that still repeat. One query."""
    found: dict[int, dict[int | None, Severity]] = defaultdict(dict)
    rows = GpuFault.objects.filter(server__in=server_ids, last_at__gt=at - FAULT_QUIET).exclude(severity=Severity.INFO)
    for server_id, gpu_id, severity in rows.values_list("server_id", "gpu_id", "severity"):
        if found[server_id].get(gpu_id) != Severity.CRITICAL:
            found[server_id][gpu_id] = Severity(severity)
    return found


def whole_cards(gpus: Iterable[Gpu]) -> list[Gpu]:
    """Return the cards that count: no MIG slices, none that was forgotten."""
    return [gpu for gpu in gpus if gpu.parent_id is None and gpu.removed_at is None]


def is_silent(server: Server, at: datetime) -> bool:
    """Say whether the server's agent has missed two reports; one that never reported, or may not, is silent too."""
    agent = getattr(server, "agent", None)
    if agent is None or agent.last_seen_at is None or agent.revoked_at is not None:
        return True
    return bool((at - agent.last_seen_at).total_seconds() > silent_after_seconds(agent.report_interval_seconds))


def server_judge(
    *, server: Server, gpus: Iterable[Gpu], faults: OpenFaults, actor: Actor, at: datetime, is_released: bool = False
) -> bool:
    """Set gpu_health (in memory) and settle the state (stored); says whether anything changed.

    A server in maintenance, draining, pending or retired keeps its state, which is a person's word, until `is_released`.
    """
    cards = whole_cards(gpus)
    health = worst_gpu_health(
        gpu_health_of(GpuState(gpu.state), gpu.state_reason, gpu.health, faults.get(gpu.pk)) for gpu in cards
    )
    has_changed, server.gpu_health = server.gpu_health != health, health
    if not is_released and ServerState(server.state) not in OBSERVED_STATES:
        return has_changed
    state, reason = server_settled_state(DriverState(server.driver_state), (GpuState(gpu.state) for gpu in cards))
    if (state, reason) != (server.state, server.state_reason):
        server_transition(server=server, to=state, reason=reason, actor=actor, at=at)
        has_changed = True
    return has_changed
