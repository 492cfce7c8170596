"""The way in from the agent: a machine that probes nothing loads no prober and starts no thread."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from fleet.agent.backoff import Backoff
from fleet.agent.panel import PanelError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from fleet.agent.panel import PanelClient
    from fleet.agent.policy import Policy
    from fleet.agent.probes.collected import Collected
    from fleet.agent.probes.prober import Prober
    from fleet.agent.probes.target import Target
    from fleet.agent.probes.thread import ProberThread

SEND_SECONDS: Final = 5.0
MOST_AT_ONCE: Final = 1_000
LOOPBACK: Final = ("127.0.0.1", "::1")
log = logging.getLogger(__name__)


class ProbesDoor:
    """What this machine probes, if anything. make_client: a connection to the panel of the sender's own."""

    def __init__(self, server_id: int, policy: Policy, make_client: Callable[[], PanelClient]) -> None:
        self._server_id, self._policy, self._make_client = server_id, policy, make_client
        self._places: frozenset[tuple[str, int]] = frozenset()
        self._thread: ProberThread | None = None
        self._collected: Collected | None = None
        self._is_ending = threading.Event()
        self._sender: threading.Thread | None = None

    def follow(self, targets: Sequence[Target], ports: Collection[int]) -> None:
        """Probe these and no others from now on. ports: of this machine's own replicas, which are probed on loopback."""
        places = frozenset((address, port) for address in LOOPBACK for port in ports)
        if self._thread is not None and places != self._places:
            self._thread.stop()
            self._thread = None
        self._places = places
        if targets or self._thread is not None:
            self._opened().set_targets(targets if self._policy.allow_probes else ())

    def close(self) -> None:
        """Stop probing; what was found and not sent is sent once more."""
        self._is_ending.set()
        if self._thread is not None:
            self._thread.stop()
        if self._sender is not None:
            self._sender.join(SEND_SECONDS)

    def _opened(self) -> ProberThread:
        if self._collected is None:
            from fleet.agent.probes.collected import Collected

            self._collected = Collected()
            self._sender = threading.Thread(target=self._send, name="probe results", daemon=True)
            self._sender.start()
        if self._thread is None:
            from fleet.agent.probes.thread import ProberThread

            self._thread = ProberThread(self._prober, self._collected)
            self._thread.start()
        return self._thread

    def _prober(self) -> Prober:
        from fleet.agent.probes.addresses import Rules
        from fleet.agent.probes.prober import Prober

        rules = Rules.of(self._policy.probe_networks, places=self._places)
        return Prober(f"server-{self._server_id}", rules=rules)

    def _send(self) -> None:
        backoff, client = Backoff(1.0, 60.0), self._make_client()
        wait = SEND_SECONDS
        while not self._is_ending.wait(wait):
            wait = SEND_SECONDS if self._sent(client) else backoff.next_delay()
            if wait == SEND_SECONDS:
                backoff.reset()
        self._sent(client)

    def _sent(self, client: PanelClient) -> bool:
        """Send what is there; says whether the panel took it. What it will never take is dropped and logged."""
        assert self._collected is not None  # noqa: S101  # made with the thread
        results = self._collected.take(MOST_AT_ONCE)
        if not results:
            return True
        try:
            client.probes(results, lost=self._collected.lost)
        except RefusedError as error:
            log.warning("The panel refused %d results of probes: %s", len(results), error)
        except PanelError as error:
            log.debug("Results of probes wait: %s", error)
            self._collected.put_back(results)
            return False
        return True
