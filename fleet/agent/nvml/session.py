"""One life of the library between initialisation and shutdown: its versions and the handles of its cards."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pynvml

from fleet.agent import wire
from fleet.agent.faults.pci import canonical_bus_id
from fleet.agent.lanes import Done, Failed, Lanes, Silent
from fleet.agent.nvml import library
from fleet.agent.nvml.card import Card, GpuReading, ReadOptions
from fleet.agent.nvml.errors import UNKNOWN_ERROR, code_of, reason_of
from fleet.agent.nvml.states import SENTENCES, DriverError, trouble_of

# With persistence mode off the driver sets a card up when the first program opens it, which takes seconds.
IDENTIFY_SECONDS: Final = 20.0


@dataclass
class Session:
    """What one initialisation gave. refused: cards without a handle, as far as they can be named."""

    driver_version: str
    library_version: str
    cuda_version: str
    cards: list[Card] = field(default_factory=list)
    refused: list[GpuReading] = field(default_factory=list)

    def identify(self, indexes: Iterable[int], lanes: Lanes, options: ReadOptions) -> None:
        """Get handle and UUID of the cards at these indexes; the others stay as they are."""
        jobs: dict[str, Callable[[], Card]] = {
            f"index {index}": partial(_identify, index, options) for index in indexes
        }
        for index, outcome in zip(indexes, lanes.run(jobs, IDENTIFY_SECONDS).values(), strict=True):
            self.refused = [refusal for refusal in self.refused if refusal.index != index]
            match outcome:
                case Done(card):
                    self.cards.append(card)
                case Failed(error):
                    self.refused.append(_refusal(index, code_of(error)))
                case Silent():
                    self.refused.append(_refusal(index, pynvml.NVML_ERROR_TIMEOUT))
        self.cards.sort(key=lambda card: card.index)

    def identify_refused(self, lanes: Lanes, options: ReadOptions) -> None:
        """Ask once more for the handles that were refused: permissions and devices come and go while programs run."""
        self.identify([refusal.index for refusal in self.refused if refusal.index is not None], lanes, options)

    def close(self) -> None:
        """Give everything back and shut the library down."""
        for card in self.cards:
            card.close()
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return  # the driver went away before: there is nothing left to shut down


def open_session(lanes: Lanes, options: ReadOptions) -> Session:
    """Initialise the library and find the cards; a card that refuses or hangs does not hide its neighbours.

    Raises DriverError.
    """
    try:
        library.load()
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise trouble_of(error.value) from error
    session = Session(library.driver_version(), library.nvml_version(), library.cuda_version())
    try:
        count = int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError as error:
        session.close()
        raise trouble_of(error.value) from error
    if count == 0:
        session.close()
        raise DriverError("no_gpu", SENTENCES["no_gpu"])
    session.identify(range(count), lanes, options)
    return session


def _identify(index: int, options: ReadOptions) -> Card:
    handle: Any = pynvml.nvmlDeviceGetHandleByIndex(index)
    uuid = str(pynvml.nvmlDeviceGetUUID(handle))
    return Card(handle, uuid, index, _bus_id(handle), options)


def _bus_id(handle: Any) -> str:
    try:
        return canonical_bus_id(str(pynvml.nvmlDeviceGetPciInfo(handle).busId))
    except (pynvml.NVMLError, ValueError):
        return ""


def _refusal(index: int, code: int) -> GpuReading:
    """Describe a card that gives no handle; its identity is found by what else is known, in the round."""
    state = "lost" if code == pynvml.NVML_ERROR_GPU_IS_LOST else "unknown"
    reason = reason_of(code)
    if reason == UNKNOWN_ERROR:
        reason = "handle_refused"
    return GpuReading(f"{wire.UNIDENTIFIED}{index}", index, state=state, reason=reason)
