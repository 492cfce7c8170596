"""XIDs as NVML tells them: a thread that looks for events of all cards, and never spins when that fails."""

import ctypes
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

import pynvml

from fleet.agent import clock
from fleet.agent.backoff import Backoff
from fleet.agent.faults.ledger import Sighting
from fleet.agent.nvml.card import Card

LOOK_SECONDS: Final = 2.0
WAIT_MILLISECONDS: Final = 1
MAX_EVENTS_A_LOOK: Final = 100
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
        """Take what the set has gathered, every two seconds: it keeps events until they are fetched.

        Looking instead of sleeping inside the library costs nothing, ends at once when told to, and cannot spin: on a
        lost card a wait may return immediately, for ever.
        """
        pause = Backoff(LOOK_SECONDS, 30.0, has_jitter=False)
        delay = LOOK_SECONDS
        while not self._is_stopped.wait(delay):
            try:
                for _ in range(MAX_EVENTS_A_LOOK):
                    self._tell(pynvml.nvmlEventSetWait_v2(events, WAIT_MILLISECONDS))
                delay = LOOK_SECONDS
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_TIMEOUT:
                    pause.reset()
                    delay = LOOK_SECONDS
                else:
                    delay = pause.next_delay()

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
