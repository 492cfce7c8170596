"""A simulated card and its MIG instances: what its calls answer, edited while programs read it."""

import time
import uuid as uuids
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pynvml

from fleet.simulation.nvml.layout import (
    FOREVER_NS,
    MAX_PROCESSES,
    READING_INDEX,
    TEXT_LENGTH,
    DeviceLayout,
    ReadingLayout,
    SimulationError,
    TextLayout,
)

if TYPE_CHECKING:
    from fleet.simulation.nvml.host import SimulatedHost

TEXTS: Final = ("name", "uuid", "serial", "vbios", "part_number")
PROCESS_KINDS: Final = {"compute": 1, "graphics": 2, "mps": 4}
# What the driver does not answer for a card that is divided into MIG instances.
HIDDEN_BY_MIG: Final = (
    "utilization_percent",
    "memory_busy_percent",
    "encoder_percent",
    "decoder_percent",
    "jpeg_percent",
    "ofa_percent",
    "process_utilization",
    "remapped_rows_correctable",
    "remapped_rows_uncorrectable",
    "remapped_rows_pending",
    "remapped_rows_failure",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process on a card. memory_bytes None: the driver does not say. kinds: of compute, graphics, mps."""

    pid: int
    name: str = ""
    memory_bytes: int | None = 0
    kinds: tuple[str, ...] = ("compute",)
    sm_percent: int = 0
    memory_percent: int = 0
    encoder_percent: int = 0
    decoder_percent: int = 0


class Device:
    """What a card and a MIG instance have in common: texts, readings and processes, each with an answer of its own."""

    def __init__(self, host: "SimulatedHost", slot: int, layout: DeviceLayout) -> None:
        self.host = host
        self.slot = slot
        self._layout = layout

    @property
    def uuid(self) -> str:
        """The UUID as NVML tells it."""
        return bytes(self._layout.uuid.value).decode()

    @property
    def name(self) -> str:
        """The name as NVML tells it."""
        return bytes(self._layout.name.value).decode()

    def _reading(self, name: str) -> ReadingLayout:
        try:
            reading: ReadingLayout = self._layout.readings[READING_INDEX[name]]
        except KeyError:
            raise SimulationError(f"There is no reading called {name!r}; the names are in readings.def.") from None
        return reading

    def get(self, name: str) -> int | None:
        """Return the present value of a reading, None when its call answers an error."""
        reading = self._reading(name)
        if reading.code != pynvml.NVML_SUCCESS:
            return None
        grown = reading.rate_per_second * (time.monotonic_ns() - reading.since_ns) / 1e9
        return int(reading.value + grown)

    def set(self, **readings: int | None) -> None:
        """Give readings by name, all at once for a reader; None is NOT_SUPPORTED. Clears an error set by `fail`."""
        with self.host.edit():
            for name, value in readings.items():
                reading = self._reading(name)
                reading.rate_per_second = 0.0
                reading.value = value or 0
                reading.code = pynvml.NVML_ERROR_NOT_SUPPORTED if value is None else pynvml.NVML_SUCCESS

    def grow(self, **rates_per_second: float) -> None:
        """Let counters grow from their present value at so much a second, until told otherwise."""
        with self.host.edit():
            for name, rate in rates_per_second.items():
                value = self.get(name)
                reading = self._reading(name)
                if value is None:
                    raise SimulationError(f"{name} of {self.uuid} has no value that could grow.")
                reading.value = value
                reading.since_ns = time.monotonic_ns()
                reading.rate_per_second = rate

    def update(self, values: Mapping[str, float], rates_per_second: Mapping[str, float] | None = None) -> None:
        """Move readings on without touching what they answer: an error stays one, what a card lacks stays lacking.

        rates_per_second: counters, which grow from their present value at so much a second from now on.
        """
        with self.host.edit():
            for name, value in values.items():
                self._reading(name).value = round(value)
            for name, rate in (rates_per_second or {}).items():
                reading = self._reading(name)
                now = time.monotonic_ns()
                reading.value += round(reading.rate_per_second * (now - reading.since_ns) / 1e9)
                reading.since_ns = now
                reading.rate_per_second = rate

    def fail(self, name: str, code: int = pynvml.NVML_ERROR_NOT_SUPPORTED) -> None:
        """Let the calls for one reading answer an error code of pynvml; its value comes back with `heal`."""
        with self.host.edit():
            self._reading(name).code = code

    def heal(self, name: str) -> None:
        """Let the calls for one reading answer its value again."""
        self.fail(name, pynvml.NVML_SUCCESS)

    def slow(self, name: str, seconds: float) -> None:
        """Let the calls for one reading take this long, as PCIe throughput takes 20 ms."""
        with self.host.edit():
            self._reading(name).delay_us = round(seconds * 1e6)

    def set_text(self, field: str, value: str | None) -> None:
        """Give name, uuid, serial, vbios or part_number; None is NOT_SUPPORTED."""
        if field not in TEXTS:
            raise SimulationError(f"There is no text called {field!r}; there are {', '.join(TEXTS)}.")
        encoded = (value or "").encode()
        if len(encoded) >= TEXT_LENGTH:
            raise SimulationError(f"{field} may have {TEXT_LENGTH - 1} bytes, this has {len(encoded)}.")
        with self.host.edit():
            text: TextLayout = getattr(self._layout, field)
            text.value = encoded
            text.code = pynvml.NVML_ERROR_NOT_SUPPORTED if value is None else pynvml.NVML_SUCCESS

    def set_processes(self, processes: Iterable[Process]) -> None:
        """Replace the list of processes."""
        wanted = list(processes)
        if len(wanted) > MAX_PROCESSES:
            raise SimulationError(f"A card may have {MAX_PROCESSES} processes, this has {len(wanted)}.")
        with self.host.edit():
            for item, process in zip(self._layout.processes, wanted, strict=False):
                item.pid = process.pid
                item.kinds = sum(PROCESS_KINDS[kind] for kind in set(process.kinds))
                item.memory_bytes = -1 if process.memory_bytes is None else process.memory_bytes
                item.sm_percent = process.sm_percent
                item.memory_percent = process.memory_percent
                item.encoder_percent = process.encoder_percent
                item.decoder_percent = process.decoder_percent
                item.gpu_instance = self._layout.gpu_instance
                item.compute_instance = self._layout.compute_instance
                item.name = process.name.encode()[:63]
            self._layout.process_count = len(wanted)


class Instance(Device):
    """A MIG instance of a card."""


class Card(Device):
    """A physical card."""

    def lose(self, code: int = pynvml.NVML_ERROR_GPU_IS_LOST) -> None:
        """Let every call on this card answer that it is lost (or another code: RESET_REQUIRED, UNKNOWN …)."""
        with self.host.edit():
            self._layout.code = code

    @property
    def is_lost(self) -> bool:
        """Return whether calls on this card fail because it is lost or taken out."""
        return bool(self._layout.code or self._layout.removed)

    @property
    def is_removed(self) -> bool:
        """Return whether the card was taken off the bus."""
        return bool(self._layout.removed)

    def recover(self) -> None:
        """Answer again: undo lose, remove, hang and refuse."""
        with self.host.edit():
            self._layout.code = pynvml.NVML_SUCCESS
            self._layout.removed = 0
            self._layout.hang_until_ns = 0
            self._reading("handle").code = pynvml.NVML_SUCCESS

    def remove(self) -> None:
        """Take the card off the bus: lost for who holds it, and gone from the list at the next initialisation."""
        with self.host.edit():
            self._layout.removed = 1

    def refuse(self, code: int = pynvml.NVML_ERROR_NO_PERMISSION) -> None:
        """Let nobody have a handle of this card."""
        self.fail("handle", code)

    def hang(self, seconds: float | None = None) -> None:
        """Let calls on this card not return for so long, or (None) until `recover`."""
        with self.host.edit():
            self._layout.hang_until_ns = FOREVER_NS if seconds is None else time.monotonic_ns() + round(seconds * 1e9)

    def xid(self, code: int) -> None:
        """Raise an XID: those who wait for events of this card get it."""
        self.host.raise_event(self.slot, pynvml.nvmlEventTypeXidCriticalError, code)

    @property
    def pci_bus_id(self) -> str:
        """The bus id as NVML tells it."""
        return f"{self.get('pci_domain') or 0:08X}:{self.get('pci_bus') or 0:02X}:{self.get('pci_device') or 0:02X}.0"

    def divide(self, instances: Iterable[Mapping[str, int | str]]) -> list[Instance]:
        """Turn MIG mode on with these instances: each {profile, memory_mib, streaming_multiprocessors, slices}.

        The card's own utilisation, encoder, decoder and remapped rows then are NOT_SUPPORTED, as with the driver.
        """
        with self.host.edit():
            self.set(mig_mode=1, mig_mode_pending=1)
            for name in HIDDEN_BY_MIG:
                self.fail(name)
            return [self._add_instance(number, instance) for number, instance in enumerate(instances)]

    def _add_instance(self, number: int, wanted: Mapping[str, int | str]) -> Instance:
        layout, slot = self.host.claim_slot()
        instance = Instance(self.host, slot, layout)
        layout.parent = self.slot
        layout.gpu_instance = number + 1
        layout.compute_instance = 0
        instance.set_text("name", f"{self.name} MIG {wanted['profile']}")
        instance.set_text("uuid", f"MIG-{uuids.uuid5(uuids.NAMESPACE_OID, f'{self.uuid}/{number}')}")
        instance.set(
            handle=0,
            processes=0,
            memory_v2=0,
            memory_total_bytes=int(wanted["memory_mib"]) << 20,
            memory_reserved_bytes=0,
            memory_used_bytes=0,
            mig_streaming_multiprocessors=int(wanted.get("streaming_multiprocessors", 16)),
            mig_slices=int(wanted.get("slices", 1)),
        )
        if self.get("gpm"):
            instance.set(gpm=1, gpm_sm_millipercent=0, gpm_tensor_millipercent=0, gpm_dram_millipercent=0)
        return instance

    def merge(self) -> None:
        """Turn MIG mode off: the instances go, the card answers for itself again."""
        with self.host.edit():
            self.set(mig_mode=0, mig_mode_pending=0)
            for name in HIDDEN_BY_MIG:
                if self._reading(name).code == pynvml.NVML_ERROR_NOT_SUPPORTED:
                    self.heal(name)
            self.host.release_slots(parent=self.slot)
