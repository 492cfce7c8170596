"""Every scenario of the shared fake NVML, where it is there: agent, ingest, API, and the value that its file says."""

import json

import pytest

from tests.scenarios.conftest import SHARED

MIB = 1 << 20
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


@pytest.fixture
def scenario(tell, shared_nvml):
    """Return a function that runs an agent on one scenario."""

    def begin(name, *, is_legacy=False, **environment):
        folder = shared_nvml / "build" / "legacy" if is_legacy else shared_nvml / "build"
        return tell(
            FLEETDECK_NVML_LIBRARY=str(folder / "libnvidia-ml.so.1"),
            FAKE_NVML_SCENARIO=str(shared_nvml / "scenarios" / f"{name}.json"),
            **environment,
        )

    return begin


def settled(story, count):
    """Wait until so many cards have values; return them by index."""
    return story.until(story.gpus, lambda gpus: len(gpus) == count and all(gpu["latest"] for gpu in gpus))


def health(story, uuid):
    return story.gpu(uuid)["health"]


def test_a_healthy_node_of_eight_h200(scenario):
    story = scenario("8xh200-healthy")
    gpus = settled(story, 8)
    assert {gpu["name"] for gpu in gpus} == {"NVIDIA H200"}
    assert len({gpu["uuid"] for gpu in gpus}) == 8
    assert {gpu["memory_total_bytes"] for gpu in gpus} == {143771 * MIB}
    for gpu in gpus[:4]:
        assert 90 <= gpu["latest"]["utilization_percent"] <= 100
        assert gpu["latest"]["memory_used_bytes"] == 131072 * MIB
        assert 560 < gpu["latest"]["power_watts"] < 640
        assert gpu["activity"] == "busy"
    free = story.gpu(gpus[7]["uuid"])
    assert (free["latest"]["utilization_percent"], free["latest"]["memory_used_bytes"]) == (0, 0)
    assert (free["activity"], free["processes"]) == ("idle", [])
    assert [process["pid"] for process in story.gpu(gpus[1]["uuid"])["processes"]] == [4102]
    fast = story.until(lambda: story.latest(gpus[0]["uuid"]), lambda latest: latest["energy_power_watts"])
    assert 540 < fast["energy_power_watts"] < 660
    assert fast["nvlink_tx_bytes_per_second"] > 1e9
    server = story.server()
    assert (server["state"], server["gpu_health"], server["driver_version"]) == ("ready", "healthy", "590.48.01")


def test_four_geforce_cards_with_their_gaps(scenario):
    story = scenario("4x4090-geforce")
    gpus = [story.gpu(gpu["uuid"]) for gpu in settled(story, 4)]
    for gpu in gpus:
        assert gpu["name"] == "NVIDIA GeForce RTX 4090"
        assert gpu["latest"]["memory_temperature_celsius"] is None
        assert gpu["latest"]["nvlink_tx_bytes_per_second"] is None
        assert gpu["facts"].get("serial", "") == ""
        assert gpu["health"].get("ecc_uncorrected_volatile") is None
        assert gpu["health"]["persistence_mode"] is False
    assert (gpus[2]["health"]["pcie_width"], gpus[2]["facts"]["pcie_width_maximum"]) == (8, 16)
    assert [process.get("memory_used_bytes") for process in gpus[2]["processes"]] == [None]
    assert {kind for process in gpus[0]["processes"] for kind in process["kinds"]} == {"graphics", "compute"}
    assert (gpus[3]["latest"]["utilization_percent"], gpus[3]["activity"]) == (0, "idle")
    assert gpus[3]["latest"]["fan_percent"] == 0


def test_one_l20_that_serves_a_model(scenario):
    story = scenario("1xl20")
    [gpu] = settled(story, 1)
    assert gpu["name"] == "NVIDIA L20"
    assert gpu["latest"]["memory_used_bytes"] == 41320 * MIB
    assert 9 <= gpu["latest"]["utilization_percent"] <= 86
    assert gpu["power_limit_watts"] == 275


def test_two_a100_with_nvlink_and_errors_on_one(scenario):
    story = scenario("2xa100-80gb-nvlink", FAKE_NVML_SPEED="20")
    first, second = (gpu["uuid"] for gpu in settled(story, 2))
    traffic = story.until(lambda: story.latest(first), lambda latest: latest["nvlink_rx_bytes_per_second"])
    assert traffic["nvlink_tx_bytes_per_second"] > 1e9
    assert health(story, first)["nvlink_errors"] == 0
    story.until(lambda: health(story, second)["nvlink_errors"], lambda errors: errors >= 3)
    assert health(story, second)["nvlink_active_links"] == 12


def test_loaded_cards_that_do_nothing(scenario):
    story = scenario("idle-but-loaded", FAKE_NVML_TIME="30")
    gpus = settled(story, 4)
    assert {gpu["latest"]["memory_used_bytes"] for gpu in gpus} == {129394 * MIB}
    assert [gpu["latest"]["utilization_percent"] for gpu in gpus] == [0, 0, 0, 0]
    assert [gpu["activity"] for gpu in gpus] == ["parked", "parked", "parked", "busy"]
    assert gpus[3]["latest"]["decoder_percent"] == 55
    assert gpus[0]["latest"]["power_watts"] == pytest.approx(118)


def test_an_old_t4_whose_driver_lacks_the_newer_calls(scenario):
    story = scenario("t4-old", is_legacy=True)
    [card] = settled(story, 1)
    gpu = story.gpu(card["uuid"])
    assert (gpu["name"], story.server()["driver_version"]) == ("Tesla T4", "470.182.03")
    assert gpu["latest"]["memory_used_bytes"] == (1032 + 388) * MIB  # the older call counts what the driver reserves
    assert gpu["unsupported"]["memory_reserved_bytes"] == "function_not_found"
    assert (gpu["health"]["retired_pages_single_bit"], gpu["health"]["retired_pages_double_bit"]) == (1, 0)
    assert gpu["health"].get("remapped_rows_correctable") is None
    assert gpu["latest"]["clock_event_reasons"] is not None
    assert len(gpu["processes"]) == 1
    assert gpu["health"]["pcie_width"] == 8


def test_four_cards_each_held_back_by_something_else(scenario):
    story = scenario("throttled-hot")
    hot, capped, braked, fine = (gpu["uuid"] for gpu in settled(story, 4))
    latest = story.until(lambda: story.latest(hot), lambda latest: latest["clock_event_reasons"] == 0x48)
    story.until(lambda: story.latest(hot)["temperature_celsius"], lambda value: value == 93)
    assert latest["sm_clock_mhz"] == 705
    story.until(lambda: story.latest(hot)["throttled_percent"], lambda value: value and value > 95)
    latest = story.until(lambda: story.latest(capped), lambda latest: latest["power_capped_percent"])
    assert latest["clock_event_reasons"] == 0x4
    assert latest["power_capped_percent"] == pytest.approx(80, abs=4)
    assert latest["power_watts"] == pytest.approx(399)
    assert story.latest(braked)["clock_event_reasons"] == 0x88
    assert story.latest(braked)["sm_clock_mhz"] == 345
    assert story.latest(fine)["clock_event_reasons"] & 0xE8 == 0


def test_xids_are_told_once_each_and_the_card_with_79_is_lost(scenario):
    story = scenario("xid-79", FAKE_NVML_SPEED="0.15")
    first, second = (gpu["uuid"] for gpu in story.until(story.gpus, lambda gpus: len(gpus) == 2))
    faults = story.until(
        lambda: story.panel.results(f"faults/?server={story.id}"),
        lambda faults: {79} <= {each["code"] for each in faults},
    )
    assert {(each["code"], each["gpu_uuid"]) for each in faults} == {
        (31, first),
        (43, first),
        (94, second),
        (79, second),
    }
    assert {each["count"] for each in faults} == {1}
    severity = {each["code"]: each["severity"] for each in faults}
    assert (severity[31], severity[94], severity[79]) == ("info", "warning", "critical")
    states = story.until(
        lambda: {gpu["uuid"]: gpu["state"] for gpu in story.gpus()}, lambda states: states[second] == "lost"
    )
    assert states[first] == "ok"
    at = story.latest(first)["at"]
    story.until(lambda: story.latest(first)["at"], lambda later: later > at)


def test_a_driver_upgraded_under_a_running_module(scenario):
    story = scenario("driver-mismatch")
    server = story.until(story.server, lambda server: server["driver_state"] == "version_mismatch")
    assert "reboot" in server["driver_detail"]
    assert story.gpus() == []


def test_a_library_without_its_kernel_module(scenario):
    story = scenario("no-driver")
    server = story.until(story.server, lambda server: server["driver_state"] == "not_loaded")
    assert server["driver_detail"]


def test_a_live_edit_of_a_scenario_reaches_the_api(tell, shared_nvml, tmp_path):
    """The file is edited while the agent runs: what the fake is for."""
    path = tmp_path / "live.json"
    scenario = {"host": "live", "gpus": [{"profile": "l20", "count": 2}]}
    path.write_text(json.dumps(scenario))
    story = tell(
        FLEETDECK_NVML_LIBRARY=str(shared_nvml / "build" / "libnvidia-ml.so.1"),
        FAKE_NVML_SCENARIO=str(path),
        FAKE_NVML_PROFILES=str(shared_nvml / "profiles"),
    )
    first, second = (gpu["uuid"] for gpu in settled(story, 2))
    scenario["per_gpu"] = {"1": {"temp": {"gpu": 77}, "power": {"usage_w": "!UNKNOWN"}}}
    (tmp_path / "next.json").write_text(json.dumps(scenario))
    (tmp_path / "next.json").replace(path)
    latest = story.until(lambda: story.latest(second), lambda latest: latest["temperature_celsius"] == 77)
    assert latest["power_watts"] is None
    assert story.latest(first)["power_watts"] is not None


def test_no_scenario_is_left_out():
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not here: its scenarios are not run")
    told = {
        *("8xh200-healthy", "4x4090-geforce", "1xl20", "2xa100-80gb-nvlink", "idle-but-loaded"),
        *("t4-old", "throttled-hot", "xid-79", "driver-mismatch", "no-driver"),
    }
    assert {path.stem for path in (SHARED / "scenarios").iterdir()} == told
