"""The driver over time: initialised, read, given up and initialised again, while whoever asks is answered in time.

Nothing here waits on the driver for longer than a deadline, whatever the driver does.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from fleet.agent import clock, wire
from fleet.agent.backoff import Backoff
from fleet.agent.faults.ledger import FaultLedger
from fleet.agent.lanes import Done, Errand, Failed, Lanes, Silent
from fleet.agent.nvml import library
from fleet.agent.nvml.card import Card, GpuReading, ReadOptions
from fleet.agent.nvml.errors import CardLostError, StartOverError
from fleet.agent.nvml.events import EventWatcher
from fleet.agent.nvml.roll import Roll
from fleet.agent.nvml.session import Session, open_session
from fleet.agent.nvml.states import SENTENCES, DriverError, trouble_of

CARD_SECONDS: Final = 3.0
# How long a round waits for an initialisation, and after how long that counts as not answering.
OPEN_WAIT_SECONDS: Final = 3.0
OPEN_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 5.0
REFUSED_SECONDS: Final = 30.0
MISSING_SECONDS: Final = 60.0

log = logging.getLogger(__name__)


class DriverWatch:
    """Reads all cards round by round. `read` is for one thread at a time."""

    def __init__(
        self, options: ReadOptions, ledger: FaultLedger, opener: Callable[..., Session] = open_session
    ) -> None:
        self._options = options
        self._ledger = ledger
        self._opener = opener
        self._lanes = Lanes()
        self._roll = Roll()
        self._session: Session | None = None
        self._opening: Errand[Session] | None = None
        self._events: EventWatcher | None = None
        self._backoff = Backoff(1.0, 30.0, has_jitter=False)
        self._reopen_at: float | None = 0.0
        self._ask_refused_at = 0.0
        self.driver = wire.Driver("unknown", "The agent has not heard from the driver yet.", since_ms=clock.now().at_ms)

    def read(self, *, is_pcie_wanted: bool = False) -> list[GpuReading]:
        """Return one reading of every known card and instance; `driver` is up to date afterwards."""
        if self._session is not None and self._is_reopening_due():
            self._close()
        if self._session is None:
            self._open()
        if self._session is None:
            return self._roll.unavailable()
        return self._read_cards(self._session, is_pcie_wanted=is_pcie_wanted)

    def is_library_stale(self) -> bool:
        """Say whether only a new process can read this driver: it was upgraded, and this one holds the library of before."""
        return self.driver.state == "version_mismatch" and library.loaded_library_was_replaced()

    def close(self) -> None:
        """Shut the library down, unless a call is still out."""
        if self._session is not None:
            self._close()

    # ---- opening and closing

    def _is_reopening_due(self) -> bool:
        """Say whether it is time to start over; never under a call that has not returned."""
        return self._reopen_at is not None and time.monotonic() >= self._reopen_at and not self._lanes.has_silent()

    def _open(self) -> None:
        """Start an initialisation when one is due, and take its result when there is one."""
        if self._opening is None:
            if self._lanes.has_silent():
                self._say("not_answering", SENTENCES["not_answering"])
            if not self._is_reopening_due():
                return
            self._opening = Errand(lambda: self._opener(self._lanes, self._options))
        outcome = self._opening.outcome(OPEN_WAIT_SECONDS if self._opening.age_seconds < OPEN_WAIT_SECONDS else 0.0)
        if outcome is None:
            if self._opening.age_seconds >= OPEN_SECONDS:
                self._say("not_answering", SENTENCES["not_answering"], since_ms=self._opening.began_ms)
            return
        self._opening = None
        match outcome:
            case Done(session):
                self._opened(session)
            case Failed(DriverError() as trouble):
                self._retry_later(trouble)
            case Failed(error):
                log.error("Initialising the driver failed.", exc_info=error)
                self._retry_later(DriverError("error", f"The driver's library fails: {error!r}."[:500]))

    def _opened(self, session: Session) -> None:
        self._session, self._reopen_at = session, None
        self._ask_refused_at = time.monotonic() + REFUSED_SECONDS
        self.driver = replace(
            self.driver,
            version=session.driver_version[:64],
            library_version=session.library_version[:64],
            cuda_version=session.cuda_version[:32],
        )
        self._meet(session)

    def _meet(self, session: Session) -> None:
        """Take note of the session's cards, wherever those are asked for."""
        self._roll.meet(session.cards)
        self._ledger.learn_cards({card.pci_bus_id: card.uuid for card in session.cards if card.pci_bus_id})
        if self._events is None or self._events.stop():
            self._events = EventWatcher(session.cards, self._ledger.note)

    def _close(self) -> None:
        """End the session. Its threads are out of the library first, or it is left as it is."""
        session = self._session
        if session is None or self._lanes.has_silent() or (self._events is not None and not self._events.stop()):
            return
        self._session = self._events = None
        self._lanes.run({"close": session.close}, CLOSE_SECONDS)

    def _retry_later(self, trouble: DriverError) -> None:
        self._say(trouble.state, trouble.detail)
        self._reopen_at = time.monotonic() + self._backoff.next_delay()

    # ---- reading

    def _read_cards(self, session: Session, *, is_pcie_wanted: bool) -> list[GpuReading]:
        if session.refused and time.monotonic() >= self._ask_refused_at:
            self._ask_refused(session)
        jobs = {card.uuid: _job(card, is_pcie_wanted) for card in session.cards}
        outcomes = self._lanes.run(jobs, CARD_SECONDS)
        readings: list[GpuReading] = []
        trouble: DriverError | None = None
        for card in session.cards:
            match outcomes[card.uuid]:
                case Done(value):
                    readings.extend(value)
                case Failed(StartOverError() as error):
                    trouble = trouble_of(error.code)
                    readings.extend(self._roll.without_sample(card.uuid, "unknown", "driver_unavailable"))
                case Failed(CardLostError()):
                    readings.extend(self._roll.without_sample(card.uuid, "lost", "gpu_lost"))
                case Failed(error):
                    log.error("Reading card %s failed.", card.uuid, exc_info=error)
                    readings.extend(self._roll.without_sample(card.uuid, "unknown", "unknown_error"))
                case Silent():
                    readings.extend(self._roll.without_sample(card.uuid, "unknown", "not_answering"))
        readings.extend(self._roll.identified(session.refused, session.cards))
        readings.extend(self._roll.missing(readings))
        self._roll.remember(readings)
        self._judge(outcomes, readings, trouble)
        return readings

    def _ask_refused(self, session: Session) -> None:
        self._ask_refused_at = time.monotonic() + REFUSED_SECONDS
        count = len(session.cards)
        session.identify_refused(self._lanes, self._options)
        if len(session.cards) != count:
            self._meet(session)

    def _judge(
        self,
        outcomes: dict[str, Done[list[GpuReading]] | Failed | Silent],
        readings: list[GpuReading],
        trouble: DriverError | None,
    ) -> None:
        """Say how the driver is after a round, and decide when to start over."""
        if trouble is not None:
            self._retry_later(trouble)
            self._close()
            return
        silent = [outcome.since_ms for outcome in outcomes.values() if isinstance(outcome, Silent)]
        if silent and len(silent) == len(outcomes):
            self._say("not_answering", SENTENCES["not_answering"], since_ms=min(silent))
        else:
            self._say("ok", _count_refused(readings))
        states = {reading.state for reading in readings}
        if "lost" in states:
            self._start_over_in(self._backoff.next_delay)
        elif "missing" in states:
            self._start_over_in(lambda: MISSING_SECONDS)
        else:
            self._backoff.reset()
            self._reopen_at = None

    def _start_over_in(self, delay: Callable[[], float]) -> None:
        if self._reopen_at is None:
            self._reopen_at = time.monotonic() + delay()

    def _say(self, state: str, detail: str, *, since_ms: int | None = None) -> None:
        """Set the driver's state; its beginning stays while the state does."""
        if state != self.driver.state:
            since_ms = clock.now().at_ms if since_ms is None else since_ms
            log.log(logging.INFO if state == "ok" else logging.WARNING, "Driver: %s. %s", state, detail)
        else:
            since_ms = self.driver.since_ms
        self.driver = replace(self.driver, state=state, detail=detail[:500], since_ms=since_ms)


def _job(card: Card, is_pcie_wanted: bool) -> Callable[[], list[GpuReading]]:  # noqa: FBT001 (one flag, one use)
    return lambda: card.read(is_pcie_wanted=is_pcie_wanted)


def _count_refused(readings: list[GpuReading]) -> str:
    cards = [reading for reading in readings if not reading.parent_uuid]
    refused = [
        reading for reading in cards if reading.reason in {"handle_refused", "no_permission", "insufficient_power"}
    ]
    if not refused:
        return ""
    places = ", ".join(str(reading.index) for reading in refused)
    verb = "gives" if len(refused) == 1 else "give"
    return f"{len(refused)} of {len(cards)} cards {verb} no handle (index {places}): {refused[0].reason}."
