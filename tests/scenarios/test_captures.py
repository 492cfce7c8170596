"""What real cards said, told to a simulated driver: from there through agent, ingest and API to the same figures."""

import pytest

from fleet.simulation.cards import RTX_4090
from fleet.simulation.nvml import SimulatedHost
from tests.scenarios.captures import MIB, captured
from tests.scenarios.running import Story

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

# The cases' own figures: power in watts, memory used and in all in MiB, utilisation; None where the card has no such reading.
TOLD = {
    "smi_rtx4090_535.xml": (26.84, 2, 24564, 0),
    "smi_rtx3080_v13.xml": (139.62, 9184, 10240, 65),  # NVML's power is the mean of a second; 142.33 W was the instant
    "smi_rtxpro6000_580.xml": (66.84, None, None, None),
    "smi_a100_v12.xml": (67.03, 50, 81920, None),
    "smi_a100_mig_510.xml": (66.92, 38, 40960, None),
    "smi_a10g_v11.xml": (25.58, 22, 23028, 0),
    "smi_p100.xml": (26.16, 0, 16384, 0),
    "smi_rtx2080_win.xml": (14.5, 862, 8192, 2),
    "smi_gtx1070ti_partial.xml": (None, 42, 4096, 0),
    "csv_h200_590_load.csv": (627.4, 32362, 143771, 100),
    "csv_h200_590_idle.csv": (77.71, 0, 143771, 0),
    "csv_h100_mig_590_load.csv": (433.78, 11125, 81559, None),
    "csv_h100_mig_590_idle.csv": (71.15, 59, 81559, None),
    "csv_l40s_595_load.csv": (110.23, 1235, 46068, 9),
    "csv_l40s_595_idle.csv": (144.97, 0, 46068, 100),
    "csv_rtx2080s_win_610_load.csv": (97.99, 1366, 8192, 7),
    "csv_rtx2080s_win_610_idle.csv": (39.25, 797, 8192, 0),
    "csv_rtx4080s_595_load.csv": (84.24, 1474, 16376, 7),
    "csv_rtx4080s_595_idle.csv": (26.2, 596, 16376, 0),
}


@pytest.fixture(scope="module")
def shown(panel, library, tmp_path_factory):
    """Return {file name: (readings of the file, the card in the API)}: one server with a card for each capture."""
    directory = tmp_path_factory.mktemp("captures")
    host = SimulatedHost.create(directory / "captures.nvml")
    cards = {}
    for name, (model, readings) in captured().items():
        card = cards[name] = host.add_card(RTX_4090)
        card.set_text("name", model)
        card.set(**readings)
        if readings["memory_total_bytes"] is None:
            card.fail("memory_v2")
    environment = {"FLEETDECK_NVML_LIBRARY": str(library), "FLEETDECK_SIMULATION_FILE": str(host.path)}
    story = Story(panel, "captures", directory, environment)
    try:
        gpus = story.until(story.gpus, lambda gpus: len(gpus) == len(cards) and all(gpu["latest"] for gpu in gpus))
        by_uuid = {gpu["uuid"]: gpu for gpu in gpus}
        yield {name: (*captured()[name], by_uuid[card.uuid]) for name, card in cards.items()}
    finally:
        story.stop()


def test_every_capture_is_a_card_with_its_name(shown):
    assert shown.keys() == TOLD.keys()
    assert {name: gpu["name"] for name, (_model, _readings, gpu) in shown.items()} == {
        name: model for name, (model, _readings, _gpu) in shown.items()
    }


def test_power_memory_and_use_are_those_of_the_cases(shown):
    found = {}
    for name, (_model, _readings, gpu) in shown.items():
        latest, total = gpu["latest"], gpu["memory_total_bytes"]
        used = latest["memory_used_bytes"]
        found[name] = (
            latest["power_watts"] and round(latest["power_watts"], 2),
            used if used is None else used / MIB,
            total and total / MIB,
            latest["utilization_percent"],
        )
    assert found == TOLD


def test_every_other_reading_is_the_one_of_its_card_and_what_was_not_told_is_missing(shown):
    for name, (_model, readings, gpu) in shown.items():
        for reading in ("temperature_celsius", "memory_temperature_celsius", "fan_percent", "sm_clock_mhz"):
            assert gpu["latest"][reading] == readings[reading], (name, reading)


def test_a_card_that_tells_no_use_is_never_called_idle(shown):
    silent = {name for name, told in TOLD.items() if told[3] is None}
    assert {name: shown[name][2]["activity"] for name in silent} == dict.fromkeys(silent, "cannot_tell")
