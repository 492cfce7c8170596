"""The loop itself: orders in, one step for each replica, statuses out."""

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fleet.agent.engines.crew import Crew
from fleet.agent.engines.desk import Desk, KnownGpus
from fleet.agent.engines.docker_socket import is_likely_usable
from fleet.agent.engines.exposed.ledger import EngineLedger
from fleet.agent.engines.messenger import Messenger
from fleet.agent.engines.pace import Pace
from fleet.agent.engines.record import Book, Orders, Record
from fleet.agent.engines.replica import Replica
from fleet.agent.engines.runtimes import Runtimes
from fleet.agent.orders import ReadyCheck, ReplicaOrder, ReplicaStatus
from fleet.agent.panel import PanelClient
from fleet.agent.policy import Policy

CHECKERS: Final = 16
WORKERS: Final = 8
LOOKERS: Final = 4

log = logging.getLogger(__name__)


class Engines:
    """All replicas of this machine. client: None to tell nobody (an agent that leaves). ledger: of what their metrics say."""

    def __init__(
        self,
        folder: Path,
        policy: Policy,
        client: PanelClient | None,
        known_gpus: KnownGpus = lambda: None,
        pace: Pace | None = None,
        *,
        ledger: EngineLedger | None = None,
    ) -> None:
        self._turn = threading.Condition()
        self._is_woken = self._is_closing = False
        self._orders: Orders | None = None
        self._taken: Orders | None = None
        self._version = -1
        self._replicas: dict[int, Replica] = {}
        self._stopped: dict[int, ReplicaStatus] = {}
        self.book = Book(folder)
        self.runtimes = Runtimes(self.book, policy)
        self.desk = Desk(
            book=self.book,
            runtimes=self.runtimes.by_name,
            policy=policy,
            pace=pace or Pace(),
            checkers=Crew("engine-checks", CHECKERS, self.wake),
            workers=Crew("engine-work", WORKERS, self.wake),
            lookers=Crew("engine-looks", LOOKERS, self.wake),
            known_gpus=known_gpus,
            changed=self._changed,
            ledger=ledger or EngineLedger(),
        )
        self._messenger = Messenger(self, client, self.desk.pace) if client is not None else None
        self._thread = threading.Thread(target=self._work, name="engines", daemon=True)

    # ---- for others

    def start(self) -> None:
        """Begin, with what an earlier run left: it is adopted, and stopped only by orders that do not name it."""
        self._adopt()
        self._thread.start()
        if self._messenger is not None:
            self._messenger.start()

    def resume(self) -> None:
        """Follow the orders that were heard before."""
        orders = self.book.orders()
        if orders is not None:
            with self._turn:
                if self._orders is None:
                    self._orders = orders
            self.wake()

    def follow(self, version: int, orders: Sequence[ReplicaOrder]) -> None:
        """Take all orders that hold now, and keep them for a restart without the panel."""
        with self._turn:
            self._orders = Orders(version, list(orders))
        self.wake()

    def wake(self) -> None:
        """Have the loop look at everything now."""
        with self._turn:
            self._is_woken = True
            self._turn.notify()

    def close(self, seconds: float) -> None:
        """End the loop and leave the engines as they are."""
        with self._turn:
            self._is_closing = True
            self._turn.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)
        self.desk.workers.await_idle(seconds)  # a start that is half done is done first: the next agent finds it whole
        if self._messenger is not None:
            self._messenger.close(seconds)

    def stop_all(self, seconds: float) -> tuple[int, int]:
        """Stop everything of ours, callers or not, in this thread; returns (how many stopped, how many did not in time)."""
        self._adopt(are_containers_asked=is_likely_usable(self.desk.policy.container_socket))
        count = len(self._replicas)
        deadline = time.monotonic() + seconds
        while self._replicas and time.monotonic() < deadline:
            for replica in self._replicas.values():
                replica.follow(None)
                replica.is_hurried = True
            self._step_all()
            self._wait(0.1)
        return count - len(self._replicas), len(self._replicas)

    @property
    def orders_version(self) -> int:
        """Of the orders that the replicas follow, -1 before any."""
        return self._version

    @property
    def is_looked_over(self) -> bool:
        """Whether it was seen of every replica if it runs: before that a status is only what an earlier run remembers."""
        return all(replica.sight.is_clear for replica in self.replicas())

    def statuses(self) -> list[ReplicaStatus]:
        """Return what is to be told of all replicas, of those that were stopped since the last report too."""
        with self._turn:
            replicas, stopped = list(self._replicas.values()), dict(self._stopped)
        told = {status.id: status for status in (replica.status() for replica in replicas)}
        return [*({**stopped, **told}).values()]

    def replicas(self) -> list[Replica]:
        """Return those that are on this machine or should be."""
        with self._turn:
            return list(self._replicas.values())

    def forget_stopped(self, statuses: Sequence[ReplicaStatus]) -> None:
        """Tell no more of those that the panel knows to be stopped."""
        with self._turn:
            for status in statuses:
                if self._stopped.get(status.id) is status:
                    del self._stopped[status.id]

    # ---- the loop

    def _work(self) -> None:
        while True:
            with self._turn:
                if self._is_closing:
                    return
                orders, self._orders = self._orders, None
            if orders is not None:
                self._take(orders)
            self._step_all()
            self._wait(self.desk.pace.step)

    def _wait(self, seconds: float) -> None:
        with self._turn:
            if not self._is_woken and not self._is_closing:
                self._turn.wait(seconds)
            self._is_woken = False

    def _step_all(self) -> None:
        for replica in self.replicas():
            try:
                replica.step()
            except Exception:  # one replica's trouble must not hold up the others
                log.exception("Replica %s could not be taken a step further.", replica.record.order.id)
            if replica.is_gone:
                self._drop(replica)

    def _take(self, orders: Orders) -> None:
        """Have every replica follow its order, or none."""
        if orders == self._taken:
            return
        self._taken = orders
        wanted = {order.id: order for order in orders.replicas}
        try:
            self.book.keep_orders(orders)
        except OSError as error:
            log.warning("The orders cannot be kept for a restart: %s", error)
        with self._turn:
            for replica_id, order in wanted.items():
                if replica_id not in self._replicas:
                    self._stopped.pop(replica_id, None)
                    record = Record(order=order, since_ms=self.desk.now_ms())
                    self._replicas[replica_id] = Replica(self.desk, record, order)
            replicas = list(self._replicas.items())
        for replica_id, replica in replicas:
            replica.follow(wanted.get(replica_id))
        self._version = orders.version
        self._changed()

    def _adopt(self, *, are_containers_asked: bool = False) -> None:
        """Take up what is on this machine and ours, also what is not remembered (it is stopped, then).

        are_containers_asked: for those not remembered, too; else the container engine is left alone until an order needs it.
        """
        records = self.book.records()
        for name, runtime in self.runtimes.by_name.items():
            if name == "process" or are_containers_asked:
                with suppress(OSError):
                    records = {**{replica: _unremembered(replica, name) for replica in runtime.ours()}, **records}
        with self._turn:
            for replica_id, record in records.items():
                if replica_id not in self._replicas:
                    order = record.order if record.order.command or record.order.image else None
                    self._replicas[replica_id] = Replica(self.desk, record, order)

    def _drop(self, replica: Replica) -> None:
        order = replica.record.order
        with self._turn:
            self._replicas.pop(order.id, None)
            self._stopped[order.id] = replica.status()
            is_empty = not self._replicas and self._taken is not None and not self._taken.replicas
        self.book.forget(order.id)
        self.desk.ledger.forget(order.id)
        if is_empty:
            self.book.forget_orders()
        self._changed()

    def _changed(self) -> None:
        if self._messenger is not None:
            self._messenger.hasten()


def _unremembered(replica: int, runtime: str) -> Record:
    """Return a record for something of ours of which nothing is known but that it is here."""
    order = ReplicaOrder(
        id=replica,
        generation=0,
        endpoint="",
        revision=0,
        wanted="drain",
        runtime="process" if runtime == "process" else "container",
        command=[],
        port=1,
        ready=ReadyCheck("tcp"),
    )
    return Record(order=order, state="draining")
