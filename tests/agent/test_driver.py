"""The driver over time: cards that are refused, lost, hung or gone, and a driver that is not there."""

import pynvml
import pytest

from fleet.agent import wire
from fleet.agent.nvml import driver as driver_module
from fleet.agent.nvml import library as nvml_library
from fleet.simulation.cards import H200
from tests.waiting import eventually


def cards(host, count=3):
    return [host.add_card(H200) for _ in range(count)]


def test_every_card_of_a_healthy_server_is_read(host, watch):
    first, second, third = cards(host)
    second.set(utilization_percent=77)
    watched = watch()
    readings = watched.round()
    assert watched.state == "ok"
    assert list(readings) == [first.uuid, second.uuid, third.uuid]
    assert [reading.index for reading in readings.values()] == [0, 1, 2]
    assert readings[second.uuid].sample.utilization_percent == 77
    assert {reading.state for reading in readings.values()} == {"ok"}
    assert watched.driver.driver.version == "590.48.01"
    assert watched.driver.driver.cuda_version == "13.1"


def test_a_refused_card_does_not_hide_its_neighbours(host, watch):
    first, refused, third = cards(host)
    refused.refuse()
    watched = watch()
    readings = watched.round()
    assert readings[first.uuid].sample is not None
    assert readings[third.uuid].sample is not None
    assert readings["unidentified-1"].state == "unknown"
    assert readings["unidentified-1"].reason == "no_permission"
    assert watched.state == "ok"
    assert "1 of 3 cards gives no handle (index 1)" in watched.driver.driver.detail


def test_a_refused_card_gets_its_name_once_it_is_allowed(host, watch):
    _, refused, _ = cards(host)
    refused.refuse()
    watched = watch()
    watched.round()
    refused.recover()
    watched.driver._ask_refused_at = 0.0
    readings = watched.round()
    assert readings[refused.uuid].sample is not None
    assert len(readings) == 3
    assert watched.driver.driver.detail == ""


def test_a_card_that_was_known_before_is_refused_under_its_own_name(host, watch):
    first, later_refused, _ = cards(host)
    watched = watch()
    watched.round()
    later_refused.refuse(pynvml.NVML_ERROR_UNKNOWN)
    first.lose()
    watched.round()
    first.recover()
    readings = watched.round_after_backoff()
    assert readings[later_refused.uuid].state == "unknown"
    assert readings[later_refused.uuid].reason == "handle_refused"
    assert len(readings) == 3


def test_a_lost_card_is_lost_alone_and_comes_back(host, watch):
    first, lost, third = cards(host)
    watched = watch()
    watched.round()
    lost.lose()
    readings = watched.round()
    assert (readings[lost.uuid].state, readings[lost.uuid].reason) == ("lost", "gpu_lost")
    assert readings[first.uuid].state == readings[third.uuid].state == "ok"
    lost.recover()
    readings = watched.round_after_backoff()
    assert {reading.state for reading in readings.values()} == {"ok"}
    assert watched.driver._reopen_at is None


def test_initialisations_for_a_lost_card_are_spaced_from_one_to_thirty_seconds(host, watch):
    _, lost, _ = cards(host)
    watched = watch()
    lost.lose()
    watched.round()
    delays = []
    for _ in range(7):
        before = driver_module.time.monotonic()
        delays.append(round(watched.driver._reopen_at - before))
        watched.round_after_backoff()
    assert delays == [1, 2, 4, 8, 16, 30, 30]


def test_a_card_that_fell_off_the_bus_is_missing_and_the_others_keep_their_names(host, watch):
    first, removed, third = cards(host)
    third.set(utilization_percent=33)
    watched = watch()
    watched.round()
    removed.remove()
    assert watched.round()[removed.uuid].state == "lost"
    readings = watched.round_after_backoff()
    assert (readings[removed.uuid].state, readings[removed.uuid].reason) == ("missing", "not_enumerated")
    assert readings[removed.uuid].index is None
    assert readings[third.uuid].index == 1, "the index moved up, the card did not"
    assert readings[third.uuid].sample.utilization_percent == 33
    assert readings[first.uuid].index == 0
    assert readings[removed.uuid].facts.name == "NVIDIA H200", "what was known of it stays known"


def test_a_missing_card_that_returns_is_read_again(host, watch):
    _, removed, _ = cards(host)
    watched = watch()
    watched.round()
    removed.remove()
    watched.round()
    watched.round_after_backoff()
    removed.recover()
    readings = watched.round_after_backoff()
    assert {reading.state for reading in readings.values()} == {"ok"}


def test_a_hung_card_does_not_hide_its_neighbours_and_comes_back(host, watch):
    first, hung, third = cards(host)
    watched = watch()
    watched.round()
    hung.hang()
    for _ in range(3):
        readings = watched.round()
        assert (readings[hung.uuid].state, readings[hung.uuid].reason) == ("unknown", "not_answering")
        assert readings[first.uuid].sample is not None
        assert readings[third.uuid].sample is not None
        assert watched.state == "ok"
    assert len(watched.driver._lanes._left_behind) == 1, "one thread waits for the card, however often it was due"
    hung.recover()
    eventually(lambda: not watched.driver._lanes.has_silent())
    assert watched.round()[hung.uuid].state == "ok"


def test_a_card_that_hangs_while_cards_are_found_does_not_hide_its_neighbours(host, watch, monkeypatch):
    monkeypatch.setattr("fleet.agent.nvml.session.IDENTIFY_SECONDS", 0.3)
    first, hung, third = cards(host)
    hung.hang()
    watched = watch()
    readings = eventually(watched.round)
    assert readings[first.uuid].sample is not None
    assert readings[third.uuid].sample is not None
    assert readings["unidentified-1"].reason == "not_answering"
    hung.recover()
    eventually(lambda: not watched.driver._lanes.has_silent())
    watched.driver._ask_refused_at = 0.0
    assert watched.round()[hung.uuid].state == "ok"


def test_nothing_starts_over_under_a_call_that_is_out(host, watch):
    first, hung, lost = cards(host)
    watched = watch()
    watched.round()
    host.forget_calls()
    hung.hang()
    lost.lose()
    watched.round()
    watched.round_after_backoff()
    assert not host.calls().get("nvmlDeviceGetCount_v2"), "it was initialised again under the call"
    hung.recover()
    eventually(lambda: not watched.driver._lanes.has_silent())
    watched.round()
    assert host.calls()["nvmlDeviceGetCount_v2"] == 1
    assert first.uuid in watched.round()


def test_a_driver_of_which_no_call_returns_is_not_answering_since_it_hung(host, watch):
    known = cards(host)
    watched = watch()
    watched.round()
    host.hang()
    readings = watched.round()
    assert watched.state == "not_answering"
    assert {reading.reason for reading in readings.values()} == {"not_answering"}
    since = watched.driver.driver.since_ms
    watched.round()
    assert watched.driver.driver.since_ms == since
    host.recover()
    eventually(lambda: not watched.driver._lanes.has_silent())
    readings = watched.round()
    assert watched.state == "ok"
    assert {card.uuid for card in known} == {uuid for uuid, reading in readings.items() if reading.sample}


def test_an_initialisation_that_hangs_holds_nothing_up(host, watch, monkeypatch):
    cards(host)
    host.hang()
    watched = watch()
    assert watched.round() == {}
    monkeypatch.setattr(driver_module, "OPEN_SECONDS", 0.0)
    assert watched.round() == {}
    assert watched.state == "not_answering"
    assert "has not returned" in watched.driver.driver.detail
    host.recover()
    assert len(eventually(watched.round)) == 3
    assert watched.state == "ok"


@pytest.mark.parametrize(
    ("code", "state", "words"),
    [
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "version_mismatch", "reboot"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "not_loaded", "kernel module is not loaded"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "no_permission", "/dev/nvidia"),
        (pynvml.NVML_ERROR_UNKNOWN, "error", "Unknown Error"),
    ],
)
def test_what_keeps_the_driver_from_starting_is_a_state_with_a_sentence(host, watch, code, state, words):
    cards(host)
    host.fail_init(code)
    watched = watch()
    assert watched.round() == {}
    assert watched.state == state
    assert state in wire.DRIVER_STATES
    assert words in watched.driver.driver.detail
    host.recover()
    assert len(watched.round_after_backoff()) == 3
    assert watched.state == "ok"


def test_a_driver_without_cards_says_so(host, watch):
    watched = watch()
    assert watched.round() == {}
    assert watched.state == "no_gpu"
    host.add_card(H200)
    assert len(watched.round_after_backoff()) == 1


def test_a_machine_without_the_library_says_so(watch, monkeypatch, tmp_path):
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setenv(nvml_library.LIBRARY_VARIABLE, str(tmp_path / "none.so"))
    watched = watch()
    assert watched.round() == {}
    assert watched.state == "no_library"
    assert "install the driver" in watched.driver.driver.detail


def test_known_cards_stay_listed_as_unknown_while_the_driver_is_away(host, watch):
    known = cards(host)
    watched = watch()
    watched.round()
    host.unload()
    readings = watched.round()
    assert {(reading.state, reading.reason) for reading in readings.values()} == {("unknown", "driver_unavailable")}
    assert {card.uuid for card in known} == set(readings)
    readings = watched.round_after_backoff()
    assert watched.state == "not_loaded"
    assert {card.uuid for card in known} == set(readings)
    host.recover()
    assert {reading.state for reading in watched.round_after_backoff().values()} == {"ok"}


def test_an_upgrade_under_a_running_module_leaves_attached_programs_alone(host, watch):
    cards(host)
    watched = watch()
    watched.round()
    host.mismatch()
    assert {reading.state for reading in watched.round().values()} == {"ok"}
    assert watched.state == "ok"


def test_the_beginning_of_a_state_stays_while_the_state_does(host, watch):
    cards(host)
    host.unload()
    watched = watch()
    watched.round()
    since = watched.driver.driver.since_ms
    watched.round_after_backoff()
    assert watched.driver.driver.since_ms == since
    host.recover()
    watched.round_after_backoff()
    assert watched.driver.driver.since_ms >= since


def test_a_fault_in_our_own_code_is_one_card_s_and_is_logged(host, watch, monkeypatch, caplog):
    first, broken, _ = cards(host)
    watched = watch()
    watched.round()
    monkeypatch.setattr(watched.driver._session.cards[1], "_fast", None)
    readings = watched.round()
    assert (readings[broken.uuid].state, readings[broken.uuid].reason) == ("unknown", "unknown_error")
    assert readings[first.uuid].state == "ok"
    assert "Reading card" in caplog.text


def test_a_version_mismatch_names_both_versions_where_they_can_be_read(tmp_path, monkeypatch):
    version = tmp_path / "version"
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n")
    maps = tmp_path / "maps"
    maps.write_text("7f00-7f01 r-xp 0 08:01 42 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.161.08\n")
    assert nvml_library.kernel_module_version(version) == "535.129.03"
    assert nvml_library.loaded_library_version(maps) == "535.161.08"
    assert nvml_library.kernel_module_version(tmp_path / "absent") == ""


def test_an_open_kernel_module_s_version_is_read_too(tmp_path):
    version = tmp_path / "version"
    version.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build\n")
    assert nvml_library.kernel_module_version(version) == "590.48.01"


def test_a_watch_that_never_opened_closes(watch):
    watch().driver.close()
