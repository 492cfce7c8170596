"""The gateway of one run of the agent: follows orders and routes, keeps the data plane running, says what it serves.

Two threads: this lane's, which fetches, applies and keeps; and the shipper's, which reports. No caller waits for either.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fleet.agent.backoff import Backoff
from fleet.agent.gateway.addresses import Resolver
from fleet.agent.gateway.dataplane import Reading, Wanted
from fleet.agent.gateway.envoy.bootstrap import executable
from fleet.agent.gateway.envoy.layout import ACCESS_LOG
from fleet.agent.gateway.envoy.plane import EnvoyPlane
from fleet.agent.gateway.shipper import Shipper
from fleet.agent.gateway.store import RouteStore
from fleet.agent.orders import GatewayOrder
from fleet.agent.panel import PanelClient, PanelError
from fleet.agent.state import Identity

KEEP_SECONDS: Final = 0.5
# While Envoy has not confirmed what it was just given.
UNSETTLED_SECONDS: Final = 0.02
LAST_SEND_SECONDS: Final = 3.0
REFRESH_SECONDS: Final = 10.0

log = logging.getLogger(__name__)


class GatewayLane:
    """`follow` may be called by any thread. folder: of all that is the gateway's; is_allowed: by this machine's policy."""

    def __init__(
        self,
        folder: Path,
        identity: Identity,
        *,
        is_allowed: bool = True,
        find_executable: Callable[[], str | None] = executable,
    ) -> None:
        self._is_allowed = is_allowed
        self._folder = folder
        self._client = PanelClient(identity.panel_url, identity.agent_token, identity.ca_file)
        self._sender = PanelClient(identity.panel_url, identity.agent_token, identity.ca_file)
        self._store = RouteStore(folder)
        self._plane = EnvoyPlane(folder / "envoy", Resolver(self._resolve_anew), find_executable())
        self._lock = threading.Condition()
        self._order: GatewayOrder | None = None
        self._is_ordered = self._is_closing = self._is_woken = self._is_resolving = False
        self._orders_version = -1
        self._applied: tuple[GatewayOrder, int] | None = None
        self._reading = Reading("starting", 0)
        self._backoff = Backoff(0.5, 30.0)
        self._fetch_at = self._refresh_at = 0.0
        self._shipper: Shipper | None = None
        self._thread = threading.Thread(target=self._work, name="gateway", daemon=True)

    def start(self) -> None:
        """Serve what was ordered last; the panel's word of today may come later."""
        self._store.load()
        self._order = self._store.order
        self._thread.start()

    def follow(self, version: int, order: GatewayOrder | None) -> None:
        """Take the panel's order; None ends the gateway."""
        with self._lock:
            if version < self._orders_version:
                return  # an answer that was overtaken
            self._orders_version = version
            if order != self._order:
                self._fetch_at = 0.0
            self._order, self._is_ordered = order, True
            self._is_woken = True
            self._lock.notify()

    def close(self) -> None:
        """Stop following. The data plane goes on serving."""
        with self._lock:
            self._is_closing = True
            self._lock.notify()
        if self._thread.is_alive():
            self._thread.join(LAST_SEND_SECONDS)
        if self._shipper is not None:
            self._shipper.close()
        self._client.close()
        self._sender.close()

    @property
    def pid(self) -> int | None:
        """The data plane's process, None when none runs."""
        return self._plane.pid

    # ---- the lane's own thread

    def _work(self) -> None:
        while not self._is_closing:
            try:
                seconds = self._turn()
            except Exception as error:  # what nobody thought of must not end the gateway's care
                log.exception("The gateway cannot be kept.")
                self._tell(
                    Reading("failed", self._reading.applied_version, f"The gateway cannot be kept: {error}"[:500])
                )
                seconds = 2.0
            with self._lock:
                if not self._is_woken and not self._is_closing:
                    self._lock.wait(seconds)
                self._is_woken = False

    def _turn(self) -> float:
        """Do what is due; returns how long nothing is."""
        with self._lock:
            order, is_ordered = self._order, self._is_ordered
        if order is None:
            if is_ordered:
                self._give_up()
            return 60.0
        if not self._is_allowed:
            self._plane.stop()
            self._start_shipper()
            self._tell(Reading("failed", 0, "This machine's policy allows no gateway (allow_gateway)."))
            return 60.0
        self._fetch(order)
        self._apply(order)
        self._start_shipper()
        if time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + REFRESH_SECONDS
            self._plane.refresh()
        self._plane.keep()
        reading = self._plane.read()
        self._tell(reading)
        return UNSETTLED_SECONDS if reading.state == "serving" and not reading.is_settled else KEEP_SECONDS

    def _fetch(self, order: GatewayOrder) -> None:
        """Get the routes that changed, when the panel says that some did."""
        if order.routes_version == self._store.version or time.monotonic() < self._fetch_at:
            return
        try:
            answer = self._client.routes(have=self._store.version)
        except PanelError as error:
            self._fetch_at = time.monotonic() + self._backoff.next_delay()
            log.info("No routes for the gateway: %s", error)
            return
        self._backoff.reset()
        if answer.version == self._store.version and not answer.is_whole:
            # The panel has nothing newer than it had, whatever its order says: not asked in a circle.
            self._fetch_at = time.monotonic() + 1.0
        changed, have_keys_changed = self._store.take(answer)
        self._store.keep(order)
        if self._applied is not None:
            self._write(order, changed, have_keys_changed=have_keys_changed)

    def _apply(self, order: GatewayOrder) -> None:
        """Write everything at the start, and what an order for another address changes."""
        with self._lock:
            is_resolving, self._is_resolving = self._is_resolving, False
        here = (order.host, order.port, order.certificate_file, order.key_file)
        before = None if self._applied is None else self._applied[0]
        is_same = before is not None and here == (before.host, before.port, before.certificate_file, before.key_file)
        if is_same and not is_resolving:
            return
        if self._store.order != order and self._store.version:
            self._store.keep(order)
        self._write(order, None if is_resolving or before is None else frozenset(), have_keys_changed=before is None)

    def _write(self, order: GatewayOrder, changed: frozenset[str] | None, *, have_keys_changed: bool) -> None:
        store = self._store
        self._plane.apply(Wanted(order, store.version, store.routes, store.keys, changed, have_keys_changed))
        self._applied = (order, store.version)

    def _give_up(self) -> None:
        """End a gateway that is not ordered any more."""
        self._plane.stop()
        if self._store.order is not None:
            log.info("This machine is no gateway any more.")
            self._store.forget()
        if self._shipper is not None:
            self._shipper.close()
            self._shipper = None
        self._applied = None

    def _start_shipper(self) -> None:
        if self._shipper is None:
            log_path = self._folder / "envoy" / ACCESS_LOG
            self._shipper = Shipper(self._folder, log_path, self._sender, self._plane, lambda: self._reading)
            self._shipper.start()

    def _tell(self, reading: Reading) -> None:
        is_news = reading != self._reading
        self._reading = reading
        if is_news and self._shipper is not None:
            self._shipper.wake()

    def _resolve_anew(self) -> None:
        with self._lock:
            self._is_resolving = self._is_woken = True
            self._lock.notify()
