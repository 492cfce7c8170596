"""The cards: what NVML tells of each, whether somebody works on it, and what a copy shows of its link."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pynvml

from fleet.agent import wire
from fleet.agent.acceptance.cuda import Cuda, CudaError
from fleet.agent.acceptance.found import CardFound, CopyFound
from fleet.agent.lanes import Done, Lanes
from fleet.agent.nvml.card import Card, GpuReading
from fleet.agent.nvml.session import Session

READ_SECONDS: Final = 5.0
LOOKS: Final = 3
LOOK_SECONDS: Final = 0.5
# A desktop or a monitor holds some memory of a card that nobody works on.
IDLE_MEMORY_BYTES: Final = 1024**3
BUSY_PERCENT: Final = 10
COPY_SECONDS: Final = 10.0
SHORTEST_COPY_SECONDS: Final = 0.5
COPY_SLACK_SECONDS: Final = 8.0
LINK_LOOK_SECONDS: Final = 0.05

_FACTS: Final = {
    "memory_total_bytes": "memory_used_bytes",
    "pcie_generation_maximum": "pcie_generation_maximum",
    "pcie_width_maximum": "pcie_width_maximum",
    "nvlink_links": "nvlink_links",
    "power_limit_default_milliwatts": "power_limit_default_milliwatts",
    "power_limit_maximum_milliwatts": "power_limit_maximum_milliwatts",
    "ecc_mode": "ecc_mode",
}
_HEALTH: Final = {
    "pcie_generation": "pcie_generation",
    "pcie_width": "pcie_width",
    "nvlink_active_links": "nvlink_active_links",
    "persistence_mode": "persistence_mode",
    "ecc_uncorrected_aggregate": "ecc_uncorrected_aggregate",
    "remapped_rows_correctable": "remapped_rows_correctable",
    "remapped_rows_uncorrectable": "remapped_rows_correctable",
    "remapped_rows_pending": "remapped_rows_correctable",
    "remapped_rows_failure": "remapped_rows_correctable",
}


def read_cards(session: Session, lanes: Lanes, wait: Callable[[float], object] = time.sleep) -> list[CardFound]:
    """Return every card of the session, those without an answer too, looked at several times for work going on."""
    first = _read(session, lanes)
    looks = [first]
    for _ in range(LOOKS - 1):
        wait(LOOK_SECONDS)
        looks.append(_read(session, lanes))
    found = [_card(card, first.get(card.uuid), [look.get(card.uuid) for look in looks]) for card in session.cards]
    refused = [
        CardFound(uuid=reading.uuid, index=reading.index, state=reading.state, missing={"card": reading.reason})
        for reading in session.refused
    ]
    return found + refused


def _read(session: Session, lanes: Lanes) -> dict[str, GpuReading]:
    outcomes = lanes.run({card.uuid: card.read for card in session.cards}, READ_SECONDS)
    return {uuid: outcome.value[0] for uuid, outcome in outcomes.items() if isinstance(outcome, Done)}


def _card(card: Card, first: GpuReading | None, looks: list[GpuReading | None]) -> CardFound:
    if first is None:
        return CardFound(uuid=card.uuid, index=card.index, state="unknown", missing={"card": "not_answering"})
    facts, health = first.facts or wire.GpuFacts(), first.health or wire.GpuHealth()
    found = CardFound(uuid=card.uuid, index=card.index, name=facts.name, state=first.state)
    for names, source in ((_FACTS, facts), (_HEALTH, health)):
        for name, reading in names.items():
            value = getattr(source, name)
            setattr(found, name, value)
            if value is None:
                found.missing[name] = first.unsupported.get(reading, "not_supported")
    found.power_limit_enforced_milliwatts = health.enforced_power_limit_milliwatts
    if found.power_limit_enforced_milliwatts is None:
        found.missing["power_limit_enforced_milliwatts"] = first.unsupported.get(
            "enforced_power_limit_milliwatts", "not_supported"
        )
    found.is_busy = is_busy(first, [look for look in looks if look is not None])
    return found


def is_busy(first: GpuReading, looks: list[GpuReading]) -> bool:
    """Say whether somebody works on a card: a compute process, memory in use, or activity in every look."""
    if any("compute" in process.kinds for process in first.processes or []):
        return True
    samples = [look.sample for look in looks if look.sample is not None]
    used = [sample.memory_used_bytes for sample in samples if sample.memory_used_bytes is not None]
    busy = [sample.utilization_percent for sample in samples if sample.utilization_percent is not None]
    return bool(used and min(used) > IDLE_MEMORY_BYTES) or bool(busy and min(busy) >= BUSY_PERCENT)


def copy_cards(
    session: Session, found: list[CardFound], lanes: Lanes, *, seconds: float, told: Callable[[int], object]
) -> None:
    """Copy to each idle card in turn; fills in `copy` and, seen meanwhile, the link. told: of each card that is done."""
    try:
        cuda = Cuda()
        devices = cuda.devices()
    except CudaError as error:
        for card in found:
            card.missing["copy"] = error.reason
        return
    handles = {card.uuid: card.handle for card in session.cards}
    share = max(seconds / max(len(found), 1), SHORTEST_COPY_SECONDS)
    deadline = time.monotonic() + seconds + COPY_SLACK_SECONDS
    for number, card in enumerate(found):
        reason = _no_copy(card, devices, deadline)
        if reason:
            card.missing["copy"] = reason
        else:
            _copy(partial(cuda.copy, devices[card.uuid], share), card, handles[card.uuid], lanes, share)
        told(number + 1)


def _no_copy(card: CardFound, devices: dict[str, int], deadline: float) -> str:
    """Return why a card is left alone, empty when it is not."""
    if card.is_busy or card.is_busy is None:
        return "busy" if card.is_busy else "not_answering"
    if card.uuid not in devices:
        return "no_cuda_device"
    return "out_of_time" if time.monotonic() >= deadline else ""


def _copy(copy: Callable[[], CopyFound], card: CardFound, handle: Any, lanes: Lanes, seconds: float) -> None:
    with _LinkWatch(handle) as link:
        outcome = lanes.run({f"copy {card.uuid}": copy}, seconds + COPY_SLACK_SECONDS)
    result = next(iter(outcome.values()))
    if isinstance(result, Done) and isinstance(result.value, CopyFound):
        card.copy = result.value
        link.give(card)
    else:
        error = getattr(result, "error", None)
        card.missing["copy"] = error.reason[:48] if isinstance(error, CudaError) else "not_answering"


class _LinkWatch:
    """Looks at a card's link while something else loads it, and keeps the best that it saw."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._generation: int | None = None
        self._width: int | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="link", daemon=True)

    def __enter__(self) -> "_LinkWatch":  # noqa: PYI034 (Self is not in Python 3.10)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(READ_SECONDS)

    def give(self, card: CardFound) -> None:
        """Write down what was seen."""
        for name, value in (("pcie_generation", self._generation), ("pcie_width", self._width)):
            if value is not None:
                setattr(card, name, value)
                card.missing.pop(name, None)
        card.is_link_loaded = self._generation is not None and self._width is not None

    def _look(self) -> None:
        while not self._is_over.wait(LINK_LOOK_SECONDS):
            try:
                generation = int(pynvml.nvmlDeviceGetCurrPcieLinkGeneration(self._handle))
                width = int(pynvml.nvmlDeviceGetCurrPcieLinkWidth(self._handle))
            except pynvml.NVMLError:
                return
            self._generation = max(self._generation or 0, generation)
            self._width = max(self._width or 0, width)
