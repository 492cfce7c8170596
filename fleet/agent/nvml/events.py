"""XIDs as NVML tells them: a thread that waits for events of all cards, and never spins when waiting fails."""

import ctypes
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import pynvml

from fleet.agent import clock
from fleet.agent.backoff import Backoff
from fleet.agent.faults.ledger import Sighting
from fleet.agent.nvml.card import Card

WAIT_MILLISECONDS: Final = 1_000
STOP_SECONDS: Final = 3.0

log = logging.getLogger(__name__)


class EventWatcher:
    """Waits for XIDs of the cards of one session, from its start until `stop`."""

    def __init__(self, cards: Iterable[Card], note: Callable[[Sighting], None]) -> None:
        self._cards = {_address(card.handle): card for card in cards}
        self._note = note
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml-events", daemon=True)
        self._thread.start()

    def stop(self) -> bool:
        """Ask it to end; returns whether it did: a wait that hangs must not see the library shut down."""
        self._is_stopped.set()
        self._thread.join(STOP_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            events = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            log.info("No XID events from NVML: %s.", error)
            return
        registered = [card for card in self._cards.values() if _register(card, events)]
        if registered:
            self._wait(events)
        try:
            pynvml.nvmlEventSetFree(events)
        except pynvml.NVMLError as error:
            log.debug("The event set was not freed: %s.", error)

    def _wait(self, events: Any) -> None:
        pause = Backoff(1.0, 30.0, has_jitter=False)
        while not self._is_stopped.is_set():
            began = time.monotonic()
            try:
                data = pynvml.nvmlEventSetWait_v2(events, WAIT_MILLISECONDS)
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_TIMEOUT:
                    pause.reset()
                    # A library that does not wait as told would make this loop spin.
                    self._is_stopped.wait(max(0.0, WAIT_MILLISECONDS / 2000 - (time.monotonic() - began)))
                else:
                    self._is_stopped.wait(pause.next_delay())
                continue
            pause.reset()
            self._tell(data)

    def _tell(self, data: Any) -> None:
        if not data.eventType & pynvml.nvmlEventTypeXidCriticalError:
            return
        card = self._cards.get(_address(data.device))
        self._note(
            Sighting(
                at_ms=clock.now().at_ms,
                code=int(data.eventData),
                source="nvml",
                uuid=card.uuid if card else "",
                pci_bus_id=card.pci_bus_id if card else "",
            )
        )


def _register(card: Card, events: Any) -> bool:
    try:
        kinds = pynvml.nvmlDeviceGetSupportedEventTypes(card.handle) & pynvml.nvmlEventTypeXidCriticalError
        if kinds:
            pynvml.nvmlDeviceRegisterEvents(card.handle, kinds, events)
    except pynvml.NVMLError as error:
        log.info("No XID events of %s: %s.", card.uuid, error)
        return False
    return bool(kinds)


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
