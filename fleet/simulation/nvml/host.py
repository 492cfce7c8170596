"""A simulated server: the file that the library maps, its cards, its driver, and how it is edited while it is read."""

import ctypes
import mmap
import platform
import threading
import time
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import addressof, c_uint32, sizeof
from pathlib import Path
from typing import Final

import pynvml

from fleet.simulation.nvml.card import Card
from fleet.simulation.nvml.layout import (
    FOREVER_NS,
    MAGIC,
    MAX_DEVICES,
    MAX_EVENTS,
    NO_INSTANCE,
    NO_PARENT,
    DeviceLayout,
    HostLayout,
    SimulationError,
)
from fleet.simulation.profile import CardProfile

FUTEX_CALL: Final = {"x86_64": 202, "aarch64": 98}
FUTEX_WAKE: Final = 1
FIRST_BUS: Final = 0x19
BUS_STEP: Final = 0x10


class SimulatedHost:
    """One simulated server.

    Readers see each edit whole: the header's sequence number is odd while one is under way; the library reads again.
    Give programs the file by FLEETDECK_SIMULATION_FILE and the library by FLEETDECK_NVML_LIBRARY or LD_LIBRARY_PATH.
    """

    def __init__(self, path: Path, memory: mmap.mmap) -> None:
        self.path = path
        self.cards: list[Card] = []
        self._memory = memory
        self._layout = HostLayout.from_buffer(memory)
        self._lock = threading.RLock()
        self._depth = 0

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        driver_version: str = "590.48.01",
        nvml_version: str = "13.590.48.01",
        cuda_version: int = 13010,
    ) -> "SimulatedHost":
        """Write a new file (over an old one, under another inode) for a healthy driver without cards."""
        path.unlink(missing_ok=True)
        with path.open("x+b") as file:
            file.truncate(sizeof(HostLayout))
            host = cls(path, mmap.mmap(file.fileno(), sizeof(HostLayout)))
        host._layout.magic = MAGIC  # its own factory
        host._layout.size = sizeof(HostLayout)
        host.set_versions(driver_version=driver_version, nvml_version=nvml_version, cuda_version=cuda_version)
        return host

    @contextmanager
    def edit(self) -> Iterator[None]:
        """Make several edits that readers see at once. Nests; other threads wait."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._layout.sequence += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._layout.sequence += 1

    def set_versions(self, *, driver_version: str, nvml_version: str, cuda_version: int) -> None:
        """Say which driver this is; cuda_version as NVML tells it, 13010 for 13.1."""
        with self.edit():
            self._layout.driver_version.value = driver_version.encode()
            self._layout.nvml_version.value = nvml_version.encode()
            self._layout.cuda_version = cuda_version

    # ---- cards

    def add_card(self, profile: CardProfile, *, uuid: str | None = None, bus: int | None = None) -> Card:
        """Put one more card in; its UUID, serial and bus follow from the file's name and the card's place."""
        with self.edit():
            layout, slot = self.claim_slot()
            card = Card(self, slot, layout)
            seed = uuids.uuid5(uuids.NAMESPACE_OID, f"{self.path.name}/{slot}")
            card.set_text("name", profile.name)
            card.set_text("uuid", uuid or f"GPU-{seed}")
            card.set_text("serial", str(1_320_000_000_000 + seed.int % 10_000_000_000) if profile.has_serial else None)
            card.set_text("vbios", profile.vbios)
            card.set_text("part_number", profile.part_number)
            card.set(**profile.readings())
            card.set(
                handle=0,
                processes=0,
                pci_domain=0,
                pci_device=0,
                minor_number=slot,
                board_id=slot << 8,
                pci_bus=(FIRST_BUS + BUS_STEP * len(self.cards)) & 0xFF if bus is None else bus,
            )
            if profile.pcie_throughput_seconds:
                card.slow("pcie_tx_kib_per_second", profile.pcie_throughput_seconds)
                card.slow("pcie_rx_kib_per_second", profile.pcie_throughput_seconds)
            self.cards.append(card)
            return card

    def claim_slot(self) -> tuple[DeviceLayout, int]:
        """Return an unused place in the file, in which no call is supported yet."""
        for slot in range(MAX_DEVICES):
            layout: DeviceLayout = self._layout.devices[slot]
            if layout.present:
                continue
            ctypes.memset(addressof(layout), 0, sizeof(DeviceLayout))
            layout.present = 1
            layout.parent = NO_PARENT
            layout.gpu_instance = layout.compute_instance = NO_INSTANCE
            for reading in layout.readings:
                reading.code = pynvml.NVML_ERROR_NOT_SUPPORTED
            self._layout.device_count = max(self._layout.device_count, slot + 1)
            return layout, slot
        raise SimulationError(f"A simulated server has room for {MAX_DEVICES} cards and MIG instances.")

    def release_slots(self, *, parent: int) -> None:
        """Take the MIG instances of one card away."""
        with self.edit():
            for layout in self._layout.devices:
                if layout.present and layout.parent == parent:
                    layout.present = 0

    # ---- the driver as a whole

    def fail_init(self, code: int) -> None:
        """Let every new initialisation fail; programs that are attached already go on."""
        with self.edit():
            self._layout.init_code = code

    def mismatch(self) -> None:
        """The driver package was upgraded under a running kernel module."""
        self.fail_init(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    def unload(self) -> None:
        """The kernel module is not loaded."""
        self.fail_init(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        self.fail_calls(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    def fail_calls(self, code: int) -> None:
        """Let every call on every card answer this code (UNKNOWN: a container that lost its devices)."""
        with self.edit():
            self._layout.calls_code = code

    def fail_wait(self, code: int) -> None:
        """Let a wait for events answer this code at once."""
        with self.edit():
            self._layout.wait_code = code
        self._wake()

    def hang(self, seconds: float | None = None) -> None:
        """Let no call return for so long, or (None) until `recover`."""
        with self.edit():
            self._layout.hang_until_ns = FOREVER_NS if seconds is None else time.monotonic_ns() + round(seconds * 1e9)

    def recover(self) -> None:
        """Undo everything that was done to the driver as a whole."""
        with self.edit():
            self._layout.init_code = self._layout.calls_code = self._layout.wait_code = pynvml.NVML_SUCCESS
            self._layout.hang_until_ns = 0

    def raise_event(self, slot: int, event_type: int, data: int) -> None:
        """Write an event for those who wait for it."""
        with self.edit():
            event = self._layout.events[self._layout.events_written % MAX_EVENTS]
            event.slot, event.type, event.data = slot, event_type, data
            self._layout.events_written += 1
        self._wake()

    def _wake(self) -> None:
        """Wake who sleeps on the event counter; where the call's number is unknown they look four times a second."""
        call = FUTEX_CALL.get(platform.machine())
        if call is not None:
            word = c_uint32.from_buffer(self._memory, HostLayout.events_written.offset)
            ctypes.CDLL(None).syscall(call, ctypes.byref(word), FUTEX_WAKE, 2**31 - 1, None, None, 0)

    # ---- what programs asked

    def calls(self) -> dict[str, int]:
        """Return how often each function was called, by all programs, since the file was made or `forget_calls`."""
        used = (counter for counter in self._layout.counters if counter.state == 2)
        return {bytes(counter.function).decode(): int(counter.calls) for counter in used}

    def forget_calls(self) -> None:
        """Count calls from zero again."""
        for counter in self._layout.counters:
            counter.calls = 0
