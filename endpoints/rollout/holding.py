"""A rollout behind a gate: its new replicas are made and tested before any request goes to them. Pure; see plan.py."""

from collections.abc import Sequence
from datetime import datetime

from endpoints.rollout.plan import (
    NO_FREE_GPU,
    SURGE,
    EndpointView,
    Gate,
    GiveUp,
    Place,
    Plan,
    ReplicaView,
    RolloutView,
    Stop,
    Test,
)

GATE_FAILED = "gate_failed"
GATE_HELD = "gate_held"


def hold(steps: Plan, view: EndpointView, rollout: RolloutView, kept: Sequence[ReplicaView], now: datetime) -> None:
    """Keep a gated rollout at no traffic: place what there is room for beside what serves, have it tested, wait.

    Nothing that serves is taken away for its card: a gate that fails must have cost no request.
    """
    new = [each for each in kept if each.revision == rollout.to_revision]
    old = [each for each in kept if each.revision != rollout.to_revision]
    steps.again_at = rollout.deadline_at
    if rollout.gate is Gate.FAILED:
        steps.actions.append(GiveUp(GATE_FAILED))
        return
    if now >= rollout.deadline_at and rollout.gate is not Gate.RUNNING:
        steps.actions.append(GiveUp(_why(rollout, new)))
        return
    steps.actions += [Stop(each.id) for each in old if each.is_failed]
    if rollout.gate is not Gate.WAITING or rollout.is_paused:
        return
    within = view.desired + (SURGE if old else 0) - len(new) - len(old)
    placed = max(min(view.desired - len(new), within, view.room.get(rollout.to_revision, 0)), 0)
    steps.actions += [Place(rollout.to_revision)] * placed
    if not new and not placed:
        steps.blocked = NO_FREE_GPU
    if new and not placed and all(each.is_ready for each in new):
        steps.actions.append(Test())


def _why(rollout: RolloutView, new: Sequence[ReplicaView]) -> str:
    """Return why a gate's time is over: its test proved nothing, its replicas were not ready, or there was no room."""
    if rollout.gate is Gate.HELD:
        return GATE_HELD
    return "deadline" if new else NO_FREE_GPU
