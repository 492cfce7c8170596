"""What all replicas of a machine share: runtimes, crews, the clock's pace, the policy, the files."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from fleet.agent import clock
from fleet.agent.engines import checks, rules
from fleet.agent.engines.contract import Runtime, StartError, Tell, UnusableError
from fleet.agent.engines.crew import Crew
from fleet.agent.engines.exposed.ledger import EngineLedger
from fleet.agent.engines.pace import Pace
from fleet.agent.engines.record import Book
from fleet.agent.orders import ReplicaOrder
from fleet.agent.policy import Policy

log = logging.getLogger(__name__)

KnownGpus = Callable[[], Mapping[str, str] | None]
GONE = frozenset({"lost", "missing"})


@dataclass(slots=True)
class Desk:
    """known_gpus: gives uuid → state of this machine's cards, None while they are not known. changed: something is to be told.

    ledger: what the metrics of engines say.
    """

    book: Book
    runtimes: Mapping[str, Runtime]
    policy: Policy
    pace: Pace
    checkers: Crew
    workers: Crew
    lookers: Crew
    known_gpus: KnownGpus
    changed: Callable[[], None]
    ledger: EngineLedger = field(default_factory=EngineLedger)
    http: httpx.Client = field(default_factory=checks.make_client)

    def now(self) -> float:
        """Return this instant in monotonic seconds."""
        return time.monotonic()

    def now_ms(self) -> int:
        """Return this instant of the wall clock in ms."""
        return clock.now().at_ms

    def start(self, order: ReplicaOrder, log_path: Path, tell: Tell) -> str:
        """Do all that a start takes; returns the image's id. May take long. Raises StartError."""
        runtime = self.runtime_for(order)
        if problem := rules.refusal(order, self.policy):
            raise StartError("policy", problem, is_permanent=True)
        try:
            runtime.version()
        except UnusableError as error:
            raise StartError("no_runtime", str(error)) from error
        if order.wanted != "pull":
            self._look_for_gpus(order)
        image_id = runtime.prepare(order, tell)
        if order.wanted == "pull":
            return image_id
        ended = runtime.look(order.id)
        if ended is not None and ended.generation == order.generation:
            runtime.fetch_log(order.id, log_path)  # the last words may have come after the end was seen
        runtime.clear(order.id)  # what ended may hold a port or a name
        if checks.is_port_taken(order):
            raise StartError("port_in_use", _port_sentence(order))
        log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        runtime.start(order, log_path)
        return image_id

    def runtime_for(self, order: ReplicaOrder) -> Runtime:
        """Return what runs an order."""
        return self.runtimes[order.runtime]

    def _look_for_gpus(self, order: ReplicaOrder) -> None:
        known = self.known_gpus()
        if known is None:
            return
        absent = [uuid for uuid in order.gpu_uuids if known.get(uuid, "missing") in GONE]
        if absent:
            raise StartError("gpu_missing", f"Not on this machine, or lost: {', '.join(absent)}.")


def _port_sentence(order: ReplicaOrder) -> str:
    holder = _holder_of(order.port)
    return f"Port {order.port} is taken{f' by {holder}' if holder else ''}: another program listens there."


def _holder_of(port: int) -> str:
    """Return which process listens on a port, empty when that cannot be seen."""
    import psutil

    try:
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})" if connection.pid else ""
    except (psutil.Error, OSError):
        return ""
    return ""
