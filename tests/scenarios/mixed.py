"""One simulated server with a card for each story, so that one agent serves them all."""

import os

from fleet.simulation.cards import A100, H100, H200, L20, L40S, RTX_4090
from fleet.simulation.nvml import Process, SimulatedHost
from fleet.simulation.nvml.layout import READINGS
from tests.scenarios.running import Story

MIB = 1 << 20
SLICES = (
    {"profile": "3g.40gb", "memory_mib": 40448, "streaming_multiprocessors": 60, "slices": 3},
    {"profile": "2g.20gb", "memory_mib": 20096, "streaming_multiprocessors": 32, "slices": 2},
    {"profile": "1g.10gb", "memory_mib": 9984},
    {"profile": "1g.10gb", "memory_mib": 9984},
)


class MixedRig:
    """One server with a card for each of these tests, so that one agent serves them all."""

    def __init__(self, panel, directory, library):
        self.host = SimulatedHost.create(directory / "mixed.nvml")
        add = self.host.add_card
        self.busy, self.idle, self.geforce = add(H200), add(H200), add(RTX_4090)
        self.divided, self.hot, self.parked, self.video = add(H100), add(A100), add(L20), add(L20)
        self.partial, self.a10g, self.odd, self.patient = add(RTX_4090), add(L40S), add(H200), add(H200)
        self._load()
        self.story = Story(
            panel,
            "mixed",
            directory,
            {"FLEETDECK_NVML_LIBRARY": str(library), "FLEETDECK_SIMULATION_FILE": str(self.host.path)},
        )
        self.story.until(self.story.gpus, lambda gpus: len(gpus) == 15 and all(gpu["latest"] for gpu in gpus))

    def _load(self):
        self.busy.set(
            utilization_percent=100,
            memory_busy_percent=8,
            memory_used_bytes=32362 * MIB,
            power_milliwatts=627_400,
            temperature_celsius=52,
            memory_temperature_celsius=61,
            sm_clock_mhz=1980,
            clock_event_reasons=0,
            gpm_sm_millipercent=86_000,
            gpm_tensor_millipercent=52_000,
        )
        self.busy.grow(energy_millijoules=627_400, nvlink_tx_kib=1_000_000, pcie_rx_bytes=5_000_000)
        self.busy.set_processes([Process(pid=os.getpid(), memory_bytes=32000 * MIB, sm_percent=97)])
        self.instances = self.divided.divide(SLICES)
        self.divided.set(memory_used_bytes=11125 * MIB, power_milliwatts=433_780)
        self.divided.fail("gpm")
        self.instances[0].set(memory_used_bytes=11000 * MIB)
        self.instances[0].set_processes([Process(pid=os.getpid(), memory_bytes=10000 * MIB)])
        self.hot.set(clock_event_reasons=0x68, temperature_celsius=89, sm_clock_mhz=705, utilization_percent=99)
        self.hot.grow(thermal_violation_ns=1e9, power_violation_ns=0)
        self.parked.set(memory_used_bytes=22273 * MIB, power_milliwatts=74_000)
        self.parked.set_processes([Process(pid=os.getpid(), memory_bytes=22000 * MIB)])
        self.video.set(utilization_percent=1, decoder_percent=55, encoder_percent=20, memory_used_bytes=900 * MIB)
        self.geforce.set(fan_percent=31, pcie_width=8)
        self.geforce.set_processes([Process(pid=os.getpid(), memory_bytes=None)])

        self.odd.set(memory_temperature_celsius=2_147_483_633)
        self._make_partial()
        self._make_a10g()

    def _make_partial(self):
        """An old consumer card: nearly everything is missing, not zero."""
        given = {"temperature_celsius", "memory_total_bytes", "memory_used_bytes", "handle", "processes"}
        kept = given | {name for name in READINGS if name.startswith(("pci_", "cuda_")) or name == "memory_v2"}
        for name in set(READINGS) - kept:
            self.partial.fail(name)
        self.partial.set_text("name", "NVIDIA GeForce GTX 1070 Ti")
        self.partial.set_text("vbios", None)
        self.partial.set(memory_total_bytes=8192 * MIB, memory_used_bytes=300 * MIB, temperature_celsius=39)

    def _make_a10g(self):
        """A card whose BAR1 is larger than its memory."""
        self.a10g.set_text("name", "NVIDIA A10G")
        self.a10g.set(
            memory_total_bytes=23028 * MIB,
            memory_used_bytes=22 * MIB,
            bar1_total_bytes=32768 * MIB,
            power_milliwatts=25_580,
            temperature_celsius=17,
        )

    def latest(self, card):
        return self.story.latest(card.uuid)

    def gpu(self, card):
        return self.story.gpu(card.uuid)
