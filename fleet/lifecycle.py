"""Which state may follow which, and what a server's state and health follow from: tables and pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fleet.enums import DriverState, GpuHealth, GpuState, JobState, ServerState
from panel.core.enums import Severity

_S = ServerState
_G = GpuState

SERVER_TRANSITIONS: Final[Mapping[ServerState, frozenset[ServerState]]] = {
    # What another machine was ordered for, and none came, is again what it was.
    _S.PENDING: frozenset({_S.JOINING, _S.NOT_REPORTING, _S.RETIRED}),
    _S.JOINING: frozenset({_S.READY, _S.DEGRADED, _S.NOT_REPORTING, _S.MAINTENANCE, _S.RETIRED}),
    _S.READY: frozenset(
        {_S.JOINING, _S.DEGRADED, _S.NOT_REPORTING, _S.UNREACHABLE, _S.DRAINING, _S.MAINTENANCE, _S.RETIRED}
    ),
    _S.DEGRADED: frozenset(
        {_S.JOINING, _S.READY, _S.NOT_REPORTING, _S.UNREACHABLE, _S.DRAINING, _S.MAINTENANCE, _S.RETIRED}
    ),
    _S.NOT_REPORTING: frozenset(
        {_S.PENDING, _S.JOINING, _S.READY, _S.DEGRADED, _S.UNREACHABLE, _S.MAINTENANCE, _S.RETIRED}
    ),
    _S.UNREACHABLE: frozenset(
        {_S.PENDING, _S.JOINING, _S.READY, _S.DEGRADED, _S.NOT_REPORTING, _S.MAINTENANCE, _S.RETIRED}
    ),
    _S.DRAINING: frozenset({_S.JOINING, _S.READY, _S.DEGRADED, _S.NOT_REPORTING, _S.MAINTENANCE, _S.RETIRED}),
    _S.MAINTENANCE: frozenset({_S.JOINING, _S.READY, _S.DEGRADED, _S.NOT_REPORTING, _S.RETIRED}),
    # A machine that left comes back with a token made for it; another one is waited for once it is ordered.
    _S.RETIRED: frozenset({_S.PENDING, _S.JOINING}),
}

# A card's state is what was observed last, so anything may follow anything else.
GPU_TRANSITIONS: Final[Mapping[GpuState, frozenset[GpuState]]] = {
    state: frozenset(set(GpuState) - {state}) for state in GpuState
}

_J = JobState
_OVER: Final[frozenset[JobState]] = frozenset()
JOB_TRANSITIONS: Final[Mapping[JobState, frozenset[JobState]]] = {
    # An agent that lost what it knew of a job may tell its end first of all.
    _J.PENDING: frozenset({_J.CLAIMED, _J.FAILED, _J.CANCELLED, _J.EXPIRED}),
    _J.CLAIMED: frozenset({_J.RUNNING, _J.SUCCEEDED, _J.FAILED, _J.CANCELLED, _J.EXPIRED}),
    _J.RUNNING: frozenset({_J.SUCCEEDED, _J.FAILED, _J.CANCELLED, _J.EXPIRED}),
    _J.SUCCEEDED: _OVER,
    _J.FAILED: _OVER,
    _J.CANCELLED: _OVER,
    _J.EXPIRED: frozenset({_J.SUCCEEDED, _J.FAILED}),  # a result that was long on its way is a result
}
OPEN_JOB_STATES: Final = (_J.PENDING, _J.CLAIMED, _J.RUNNING)

# In these states the server's own reports decide between ready and degraded; in the others a person does.
OBSERVED_STATES: Final = frozenset({_S.JOINING, _S.READY, _S.DEGRADED, _S.NOT_REPORTING, _S.UNREACHABLE})
# States of a server whose machine does not answer: ordered again, it waits for another machine.
MACHINE_GONE_STATES: Final = frozenset({_S.NOT_REPORTING, _S.UNREACHABLE, _S.RETIRED})
# States of a server that should be heard from.
REPORTING_STATES: Final = frozenset({_S.READY, _S.DEGRADED})

# An agent that has just started has not looked at the driver yet, which says nothing.
_NO_FAULT: Final = frozenset({DriverState.OK, DriverState.UNKNOWN})
# Driver states that are no fault on a machine that never showed a card: it may well have none.
_NO_FAULT_WITHOUT_GPUS: Final = _NO_FAULT | {DriverState.NO_GPU, DriverState.NO_LIBRARY}
_FAULTY_GPU_STATES: Final = (_G.LOST, _G.MISSING, _G.DEGRADED, _G.UNKNOWN)

# NVML's recovery action: 0 none, 1 reset, 2 reboot, 3 drain peers, 4 drain and reset, 5 IMEX, 6 bus reset, 7 reboot.
_RECOVERY_FAILED: Final = frozenset({1, 2, 4, 6, 7})

SILENT_REASON: Final = "server_silent"
RETIRED_REASON: Final = "server_retired"
REBUILDING_REASON: Final = "rebuilding"
REPLACED_REASON: Final = "machine_replaced"
NOT_LISTED_REASON: Final = "not_enumerated"
DRIVER_REASON: Final = "driver_unavailable"


def server_settled_state(driver_state: DriverState, gpu_states: Iterable[GpuState]) -> tuple[ServerState, str]:
    """Return the state (ready or degraded) and reason of a server that reports; gpu_states: those of its whole cards."""
    states = set(gpu_states)
    is_faulty = driver_state not in _NO_FAULT_WITHOUT_GPUS if not states else driver_state not in _NO_FAULT
    if is_faulty:
        return _S.DEGRADED, f"driver_{driver_state}"
    for state in _FAULTY_GPU_STATES:
        if state in states:
            return _S.DEGRADED, f"gpu_{state}"
    return _S.READY, ""


def gpu_health_of(
    state: GpuState, state_reason: str, health: Mapping[str, Any], worst_open_fault: Severity | None
) -> GpuHealth:
    """Return the verdict on one card.

    health: what the slow tier read (fleet.agent.wire.GpuHealth as a dict). worst_open_fault: of the faults that still
    repeat (see fleet.services.faults).
    """
    if state == _G.UNKNOWN:
        return GpuHealth.UNKNOWN
    if state in {_G.LOST, _G.MISSING} or state_reason == "reset_required" or worst_open_fault == Severity.CRITICAL:
        return GpuHealth.FAILED
    recovery_action = health.get("recovery_action")
    if health.get("remapped_rows_failure") or recovery_action in _RECOVERY_FAILED:
        return GpuHealth.FAILED
    has_warning = (
        state == _G.DEGRADED
        or worst_open_fault == Severity.WARNING
        or bool(recovery_action)
        or bool(health.get("remapped_rows_pending"))
        or bool(health.get("retired_pages_pending"))
        or (health.get("ecc_uncorrected_volatile") or 0) > 0
    )
    return GpuHealth.WARNING if has_warning else GpuHealth.HEALTHY


def worst_gpu_health(verdicts: Iterable[GpuHealth]) -> GpuHealth:
    """Return a server's gpu_health: the worst of its cards; one silent card among others that answer is a warning."""
    found = set(verdicts)
    if GpuHealth.FAILED in found:
        return GpuHealth.FAILED
    if not found or found == {GpuHealth.UNKNOWN}:
        return GpuHealth.UNKNOWN
    if GpuHealth.WARNING in found or GpuHealth.UNKNOWN in found:
        return GpuHealth.WARNING
    return GpuHealth.HEALTHY


def silent_after_seconds(report_interval_seconds: float) -> float:
    """Return how old the last report may be before the server counts as silent: two missed ones and some slack."""
    return 2 * report_interval_seconds + max(report_interval_seconds / 2, 2.5)
