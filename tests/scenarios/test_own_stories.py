"""Stories on our own simulated NVML, from a real agent through ingest to the API: what is read is what is told."""

import itertools
import os

import pytest

from fleet.simulation.cards import A100, H100, H200, L20, RTX_4090
from fleet.simulation.nvml import Process, SimulatedHost
from tests.scenarios.running import Story

MIB = 1 << 20
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SLICES = (
    {"profile": "3g.40gb", "memory_mib": 40448, "streaming_multiprocessors": 60, "slices": 3},
    {"profile": "2g.20gb", "memory_mib": 20096, "streaming_multiprocessors": 32, "slices": 2},
    {"profile": "1g.10gb", "memory_mib": 9984},
    {"profile": "1g.10gb", "memory_mib": 9984},
)


class Rig:
    """One server with a card for each of these tests, so that one agent serves them all."""

    def __init__(self, panel, directory, library):
        self.host = SimulatedHost.create(directory / "mixed.nvml")
        add = self.host.add_card
        self.busy, self.idle, self.geforce = add(H200), add(H200), add(RTX_4090)
        self.divided, self.hot, self.parked, self.video = add(H100), add(A100), add(L20), add(L20)
        self._load()
        self.story = Story(
            panel,
            "mixed",
            directory,
            {"FLEETDECK_NVML_LIBRARY": str(library), "FLEETDECK_SIMULATION_FILE": str(self.host.path)},
        )
        self.story.until(self.story.gpus, lambda gpus: len(gpus) == 11 and all(gpu["latest"] for gpu in gpus))
        self.numbers = itertools.count(1)

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

    def latest(self, card):
        return self.story.latest(card.uuid)

    def gpu(self, card):
        return self.story.gpu(card.uuid)


@pytest.fixture(scope="module")
def rig(panel, library, tmp_path_factory):
    mixed = Rig(panel, tmp_path_factory.mktemp("mixed"), library)
    yield mixed
    mixed.story.stop()


def test_a_busy_card_is_told_with_every_value(rig):
    latest = rig.story.until(lambda: rig.latest(rig.busy), lambda latest: latest["energy_power_watts"])
    assert latest["utilization_percent"] == 100
    assert latest["memory_used_bytes"] == 33_934_016_512
    assert latest["power_watts"] == pytest.approx(627.4)
    assert latest["energy_power_watts"] == pytest.approx(627.4, rel=0.03)
    assert (latest["temperature_celsius"], latest["memory_temperature_celsius"]) == (52, 61)
    assert (latest["sm_clock_mhz"], latest["performance_state"]) == (1980, 0)
    assert (latest["sm_activity_percent"], latest["tensor_activity_percent"]) == (86, 52)
    assert latest["nvlink_tx_bytes_per_second"] == pytest.approx(1_024_000_000, rel=0.03)
    assert latest["pcie_rx_bytes_per_second"] == pytest.approx(5_000_000, rel=0.03)
    gpu = rig.gpu(rig.busy)
    assert (gpu["name"], gpu["activity"], gpu["state"]) == ("NVIDIA H200", "busy", "ok")
    assert gpu["memory_total_bytes"] == 143771 * MIB
    assert gpu["power_limit_watts"] == 700
    assert gpu["facts"]["serial"].isdigit()
    [process] = gpu["processes"]
    assert (process["pid"], process["memory_used_bytes"]) == (os.getpid(), 32000 * MIB)


def test_a_free_card_is_idle_with_true_zeros(rig):
    gpu = rig.gpu(rig.idle)
    assert gpu["activity"] == "idle"
    assert (gpu["latest"]["utilization_percent"], gpu["latest"]["memory_used_bytes"]) == (0, 0)
    assert gpu["latest"]["power_watts"] == pytest.approx(77.7)


def test_a_geforce_has_gaps_with_reasons_and_never_zeros(rig):
    gpu = rig.gpu(rig.geforce)
    missing = ("memory_temperature_celsius", "nvlink_tx_bytes_per_second", "sm_activity_percent")
    assert [gpu["latest"][name] for name in missing] == [None] * 3
    assert gpu["unsupported"]["memory_temperature_celsius"] == "not_supported"
    assert gpu["facts"].get("serial", "") == ""
    assert gpu["facts"]["ecc_mode"] is False
    assert gpu["health"].get("ecc_corrected_volatile") is None
    assert (gpu["health"]["pcie_width"], gpu["facts"]["pcie_width_maximum"]) == (8, 16)
    assert (gpu["health"]["persistence_mode"], gpu["latest"]["fan_percent"]) == (False, 31)
    [process] = gpu["processes"]
    assert process.get("memory_used_bytes") is None


def test_a_divided_card_cannot_be_judged_and_its_slices_are_listed_under_it(rig):
    gpu = rig.gpu(rig.divided)
    assert gpu["latest"]["utilization_percent"] is None
    assert gpu["activity"] == "cannot_tell"
    assert gpu["latest"]["power_watts"] == pytest.approx(433.78)
    assert gpu["latest"]["memory_used_bytes"] == 11125 * MIB
    assert gpu["unsupported"]["utilization_percent"] == "mig_mode"
    slices = {each["uuid"]: each for each in rig.story.gpus() if each["parent"] == gpu["id"]}
    assert set(slices) == {instance.uuid for instance in rig.instances}
    assert sorted(each["memory_total_bytes"] // MIB for each in slices.values()) == [9984, 9984, 20096, 40448]
    assert slices[rig.instances[0].uuid]["latest"]["memory_used_bytes"] == 11000 * MIB
    assert len(rig.gpu(rig.instances[0])["processes"]) == len(gpu["processes"]) == 1
    assert rig.story.server()["gpus_known"] == 7


def test_a_throttled_card_tells_its_reasons_and_the_share_of_time(rig):
    latest = rig.story.until(lambda: rig.latest(rig.hot), lambda latest: latest["throttled_percent"])
    assert latest["clock_event_reasons"] == 0x68
    assert latest["throttled_percent"] == pytest.approx(100, abs=3)
    assert latest["power_capped_percent"] == 0
    assert (latest["temperature_celsius"], latest["sm_clock_mhz"]) == (89, 705)
    assert rig.gpu(rig.hot)["facts"]["temperature_slowdown_celsius"] == 89


def test_a_parked_model_is_loaded_and_quiet_not_free(rig):
    gpu = rig.gpu(rig.parked)
    assert (gpu["activity"], gpu["latest"]["utilization_percent"]) == ("parked", 0)
    assert gpu["latest"]["memory_used_bytes"] == 22273 * MIB


def test_a_card_that_only_decodes_video_is_busy(rig):
    gpu = rig.gpu(rig.video)
    assert (gpu["activity"], gpu["latest"]["decoder_percent"], gpu["latest"]["utilization_percent"]) == ("busy", 55, 1)


def test_values_move_while_the_agent_runs(rig):
    rig.idle.set(temperature_celsius=41)
    rig.story.until(lambda: rig.latest(rig.idle)["temperature_celsius"], lambda value: value == 41)


def test_a_series_has_the_values_over_time(rig):
    gpu = rig.gpu(rig.busy)

    def points():
        [series] = rig.story.panel.get(f"gpus/{gpu['id']}/series/?metrics=power_watts&points=60")["series"]
        return [average for _at, average, _maximum in series["points"] if average is not None]

    values = rig.story.until(points, lambda values: len(values) >= 1)
    assert values[-1] == pytest.approx(627.4)


def test_a_refused_card_does_not_hide_its_neighbours(rig):
    rig.busy.fail("temperature_celsius", 4)  # NO_PERMISSION
    try:
        latest = rig.story.until(lambda: rig.latest(rig.busy), lambda latest: latest["temperature_celsius"] is None)
        assert latest["power_watts"] == pytest.approx(627.4)
        assert rig.latest(rig.idle)["power_watts"] == pytest.approx(77.7)
    finally:
        rig.busy.heal("temperature_celsius")
    rig.story.until(lambda: rig.latest(rig.busy)["temperature_celsius"], lambda value: value == 52)
