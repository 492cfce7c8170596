"""Which state of a lease may follow which, and which one a provider's word means: tables and pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fleet.enums import BilledMode, LeaseState, Wanted
from fleet.providers.base import MachineStatus
from fleet.reasons import Reason

_L = LeaseState
_M = MachineStatus

# After this long without the provider's word that a machine is gone, its end counts as unconfirmed, and people are told.
UNCONFIRMED_AFTER: Final = timedelta(minutes=10)
# Complete listings in a row without a machine before it counts as gone.
MISSES_UNTIL_LOST: Final = 2

_ALIVE: Final = frozenset({_L.PROVISIONING, _L.BOOTING, _L.ACTIVE, _L.STOPPING, _L.STOPPED, _L.PREEMPTED, _L.FAILED})
_ENDING: Final = frozenset({_L.TERMINATING, _L.TERMINATION_UNCONFIRMED, _L.TERMINATED, _L.LOST, _L.UNKNOWN})

LEASE_TRANSITIONS: Final[Mapping[LeaseState, frozenset[LeaseState]]] = {
    # A request is refused (failed), or becomes whatever the provider says of the machine when it is first seen.
    _L.REQUESTED: _ALIVE | {_L.TERMINATING, _L.TERMINATED, _L.LOST, _L.UNKNOWN},
    **{state: (_ALIVE | _ENDING) - {state} for state in _ALIVE},
    _L.UNKNOWN: _ALIVE | {_L.TERMINATING, _L.TERMINATION_UNCONFIRMED, _L.TERMINATED, _L.LOST},
    # Ended in the provider's own console it may come back; while its end is asked for here, `state_after_status` keeps it.
    _L.TERMINATING: _ALIVE | {_L.TERMINATION_UNCONFIRMED, _L.TERMINATED, _L.LOST, _L.UNKNOWN},
    _L.TERMINATION_UNCONFIRMED: frozenset({_L.TERMINATING, _L.TERMINATED}),
    # A machine that was thought gone may show up again, and then it may cost money.
    _L.TERMINATED: frozenset({_L.TERMINATING, _L.TERMINATION_UNCONFIRMED}),
    _L.LOST: _ALIVE | {_L.TERMINATING, _L.UNKNOWN},
}

_BY_STATUS: Final[Mapping[MachineStatus, tuple[LeaseState, Reason]]] = {
    _M.PROVISIONING: (_L.PROVISIONING, Reason.NONE),
    _M.RUNNING: (_L.ACTIVE, Reason.NONE),
    _M.STOPPING: (_L.STOPPING, Reason.NONE),
    _M.STOPPED: (_L.STOPPED, Reason.NONE),
    _M.LOCKED: (_L.STOPPED, Reason.CONTRACT_ENDED),
    _M.PREEMPTED: (_L.PREEMPTED, Reason.PREEMPTED),
    _M.FAILED: (_L.FAILED, Reason.PROVIDER_FAILED),
    _M.TERMINATING: (_L.TERMINATING, Reason.NONE),
    _M.UNKNOWN: (_L.UNKNOWN, Reason.PROVIDER_ANSWER),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Life:
    """What decides about a lease's state beside the provider's word.

    is_waiting_for_agent: an agent was installed with the order and has not joined since. ending_since: when its end was
    asked for.
    """

    state: LeaseState
    wanted: Wanted
    is_waiting_for_agent: bool = False
    ending_since: datetime | None = None


def state_after_status(life: Life, status: MachineStatus, at: datetime) -> tuple[LeaseState, Reason]:
    """Return the state and reason after a provider's word about a machine that is there. GONE is told by absence, not here."""
    if life.wanted == Wanted.ENDED:
        return ending_state(life, at)
    state, reason = _BY_STATUS[status]
    if state == _L.ACTIVE and life.is_waiting_for_agent:
        return _L.BOOTING, Reason.NONE
    return state, reason


def ending_state(life: Life, at: datetime) -> tuple[LeaseState, Reason]:
    """Return the state of a lease whose end was asked for and is not confirmed."""
    if life.ending_since is not None and at - life.ending_since >= UNCONFIRMED_AFTER:
        return _L.TERMINATION_UNCONFIRMED, Reason.USER
    return _L.TERMINATING, Reason.USER


def state_after_loss(life: Life, last_status: MachineStatus) -> tuple[LeaseState, Reason]:
    """Return the state and reason of a lease whose machine the provider does not know any more."""
    if life.wanted == Wanted.ENDED or life.state == _L.TERMINATING:
        return _L.TERMINATED, Reason.USER
    if life.state == _L.PREEMPTED or last_status == _M.PREEMPTED:
        return _L.LOST, Reason.PREEMPTED
    return _L.LOST, Reason.PROVIDER_DELETED


def billed_mode(state: LeaseState, *, is_stop_saving: bool | None) -> BilledMode | None:
    """Return how a lease in this state is billed; None before anything was created.

    Billing in full is assumed wherever the provider has not said that stopping saves money.
    """
    if state == _L.REQUESTED:
        return None
    if state in {_L.STOPPED, _L.PREEMPTED} and is_stop_saving:
        return BilledMode.STOPPED
    return BilledMode.FULL


def terminate_again_after(attempts: int) -> timedelta:
    """Return the pause before an end is asked for again: 5 s, doubling to 2 min, for ever."""
    return timedelta(seconds=min(5 * 2 ** min(attempts, 10), 120))


def ask_again_after(failures: int) -> timedelta:
    """Return the pause before an account that fails is asked again: 1 min, doubling to 15 min, for ever."""
    return timedelta(seconds=min(60 * 2 ** min(max(failures - 1, 0), 6), 900))
