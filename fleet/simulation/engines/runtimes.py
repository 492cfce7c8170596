"""The runtimes of a simulated machine: what is ordered is started as a simulated engine, by the agent's own keeper."""

import dataclasses
import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from fleet.agent.engines.contract import Look, Tell
from fleet.agent.engines.processes import ProcessRuntime
from fleet.agent.engines.record import Book
from fleet.agent.orders import ReplicaOrder
from fleet.agent.policy import Policy
from fleet.simulation.engines.facts import KEY_VARIABLE, facts_of

ROOT: Final = Path(__file__).resolve().parents[3]
CARDS_VARIABLE: Final = "FLEETDECK_SIMULATION_FILE"
PULL_SECONDS: Final = 3.0
PULL_STEPS: Final = 20


class SimulatedProcesses(ProcessRuntime):
    """Plain processes: an engine that the panel knows is simulated, a command of a person's own is run as it is."""

    def __init__(self, book: Book, policy: Policy) -> None:
        super().__init__(book.folder, book.owner(), policy)
        cards = os.environ.get(CARDS_VARIABLE, "")
        self._guests = str(Path(cards).parent / "engines") if cards else ""

    def version(self) -> str:
        """Return what people read."""
        super().version()
        return "simulated"

    def start(self, order: ReplicaOrder, log: Path) -> None:
        """Start what stands for the engine. Raises StartError."""
        super().start(order if order.engine == "custom" else self._simulated(order), log)

    def _simulated(self, order: ReplicaOrder) -> ReplicaOrder:
        facts = msgspec.json.encode(facts_of(order, self._guests)).decode()
        return replace(
            order,
            command=[sys.executable, "-m", "fleet.simulation.engines", facts],
            environment={**order.environment, "PYTHONPATH": str(ROOT)},
            secrets={**order.secrets, KEY_VARIABLE: order.upstream_key},
        )


class SimulatedContainers(SimulatedProcesses):
    """Containers: an image is pulled in a few seconds, and what would run in it is simulated whatever it is."""

    def __init__(self, book: Book, policy: Policy) -> None:
        super().__init__(book, policy)
        self._pulled: set[str] = set()

    def prepare(self, order: ReplicaOrder, tell: Tell) -> str:
        """Pretend to pull the image, the first time."""
        if order.image not in self._pulled:
            for step in range(PULL_STEPS):
                tell(round(100 * step / PULL_STEPS))
                time.sleep(PULL_SECONDS / PULL_STEPS)
            self._pulled.add(order.image)
        return f"sha256:{hashlib.sha256(order.image.encode()).hexdigest()}"

    def start(self, order: ReplicaOrder, log: Path) -> None:
        """Start what stands for the container. Raises StartError."""
        ProcessRuntime.start(self, self._simulated(order), log)

    def look(self, replica: int) -> Look | None:
        """Return what there is, by the name that a container would have."""
        found = super().look(replica)
        return (
            None if found is None else dataclasses.replace(found, handle=f"container fleetdeck-{replica} (simulated)")
        )
