"""How an endpoint is for its callers, derived; and which rollout states are over."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from endpoints.enums import Phase, ReplicaState, RolloutState

_R = RolloutState
ROLLOUT_TRANSITIONS: Final[Mapping[RolloutState, frozenset[RolloutState]]] = {
    _R.RUNNING: frozenset({_R.PAUSED, _R.SUCCEEDED, _R.RETURNED, _R.FAILED, _R.CANCELLED}),
    _R.PAUSED: frozenset({_R.RUNNING, _R.RETURNED, _R.FAILED, _R.CANCELLED}),
    _R.SUCCEEDED: frozenset(),
    _R.RETURNED: frozenset(),
    _R.FAILED: frozenset(),
    _R.CANCELLED: frozenset(),
}

# What a replica's agent says last of it: its card and port are free again.
ENDED_STATES: Final = frozenset({ReplicaState.STOPPED})
# States in which the requests that gateways send are answered.
SERVING_STATES: Final = frozenset({ReplicaState.READY})


@dataclass(frozen=True, slots=True)
class Numbers:
    """An endpoint's replicas in numbers. pending: wanted and on their way."""

    desired: int
    ready: int
    pending: int


def phase_of(
    numbers: Numbers,
    *,
    is_deleting: bool,
    has_active: bool,
    rollout: RolloutState | None,
    has_failed: bool,
    blocked: str,
) -> tuple[Phase, str]:
    """Return the first phase that holds, and its reason (a code, may be empty).

    rollout: the state of the open one. has_failed: the last rollout failed and nothing was active before it.
    blocked: why a wanted replica is missing, see endpoints.rollout.plan.
    """
    is_short = numbers.ready < numbers.desired
    candidates = (
        (is_deleting, Phase.DELETING, ""),
        (has_failed and not has_active and rollout is None, Phase.FAILED, "rollout_failed"),
        (numbers.desired > 0 and numbers.ready == 0 and has_active, Phase.UNAVAILABLE, blocked),
        (rollout is RolloutState.PAUSED, Phase.PAUSED, ""),
        (rollout is not None, Phase.ROLLING_OUT, blocked),
        (is_short and (blocked != "" or numbers.pending == 0), Phase.DEGRADED, blocked),
        (numbers.ready != numbers.desired or numbers.pending > 0, Phase.SCALING, ""),
        (numbers.desired == 0, Phase.SCALED_TO_ZERO, ""),
        (True, Phase.HEALTHY, ""),
    )
    return next((phase, reason) for holds, phase, reason in candidates if holds)
