"""Makes this machine's engines match the orders: one loop in a thread of its own, level-triggered, without end.

Nothing runs, and little is imported, until there is something to do: orders, or what an earlier run of the agent left.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fleet.agent.engines.exposed.ledger import EngineLedger
from fleet.agent.orders import LIMITS, ReplicaOrder
from fleet.agent.panel import PanelClient
from fleet.agent.policy import Policy
from fleet.agent.state import Identity, StateDirectory

if TYPE_CHECKING:
    from fleet.agent.engines.reconcile import Engines

CLOSE_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


class EngineLane:
    """The engines of one run of the agent; `follow` may be called by any thread.

    known_gpus: gives uuid → state of the machine's cards, None while they are not known. ledger: where engines' metrics go.
    """

    def __init__(
        self,
        state: StateDirectory,
        identity: Identity,
        policy: Policy,
        known_gpus: Callable[[], Mapping[str, str] | None] = lambda: None,
        ledger: EngineLedger | None = None,
    ) -> None:
        self._state = state
        self._identity = identity
        self._policy = policy
        self._known_gpus = known_gpus
        self._ledger = ledger
        self._lock = threading.Lock()
        self._engines: Engines | None = None
        self._version = -1
        self._is_closed = False

    def start(self) -> None:
        """Go on with what was ordered before, whether or not the panel is there."""
        if (self._state.engines_path / "orders.json").exists() or any(self._state.engines_path.glob("*/record.json")):
            self._wake_up().resume()

    def follow(self, version: int, orders: Sequence[ReplicaOrder]) -> None:
        """Take all replicas that should be on this machine; what runs and is not among them is stopped."""
        with self._lock:
            if version < self._version or self._is_closed:
                return  # an answer that was overtaken
            self._version = version
        if self._engines is None and not orders:
            return
        self._wake_up().follow(version, list(orders)[: LIMITS["replicas"]])

    def close(self) -> None:
        """Leave the engines to themselves: they outlive the agent."""
        with self._lock:
            self._is_closed = True
            engines = self._engines
        if engines is not None:
            engines.close(CLOSE_SECONDS)

    def _wake_up(self) -> "Engines":
        with self._lock:
            if self._engines is None:
                from fleet.agent.engines.reconcile import Engines

                client = PanelClient(self._identity.panel_url, self._identity.agent_token, self._identity.ca_file)
                self._engines = Engines(
                    self._state.engines_path, self._policy, client, self._known_gpus, ledger=self._ledger
                )
                self._engines.start()
            return self._engines
