"""Cards and drivers that fail, on our own simulated NVML: each with a server and an agent of its own."""

import pytest

from fleet.simulation.cards import H200

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def states(story):
    return {gpu["uuid"]: (gpu["state"], gpu["state_reason"], gpu["index"]) for gpu in story.gpus()}


def settled(story, count):
    """Wait until so many cards are well and have values."""
    return story.until(
        story.gpus, lambda gpus: len(gpus) == count and all(gpu["latest"] and gpu["state"] == "ok" for gpu in gpus)
    )


def test_a_card_with_xid_79_is_lost_then_missing_then_back_and_its_neighbours_keep_their_histories(rig, host):
    first, second, third = (host.add_card(H200) for _ in range(3))
    second.set(utilization_percent=90)
    third.set(utilization_percent=30, temperature_celsius=44)
    story = rig()
    ids = {gpu["uuid"]: gpu["id"] for gpu in settled(story, 3)}

    second.xid(79)
    second.lose()
    story.until(lambda: states(story)[second.uuid][:2], lambda state: state == ("lost", "gpu_lost"))
    [fault] = story.until(lambda: story.panel.results(f"faults/?server={story.id}"))
    assert (fault["code"], fault["gpu_uuid"], fault["severity"], fault["count"]) == (79, second.uuid, "critical", 1)
    server = story.server()
    assert (server["state"], server["gpu_health"], server["driver_state"]) == ("degraded", "failed", "ok")
    assert (server["gpus_known"], server["gpus_answering"], server["gpus_missing"]) == (3, 2, 1)

    second.remove()
    story.until(lambda: states(story)[second.uuid][0], lambda state: state == "missing")
    after = states(story)
    assert after[first.uuid] == ("ok", "", 0)
    assert after[third.uuid] == ("ok", "", 1)  # the index shifted; the card did not
    third.set(temperature_celsius=45)
    story.until(lambda: story.latest(third.uuid)["temperature_celsius"], lambda value: value == 45)
    assert story.latest(third.uuid)["utilization_percent"] == 30
    assert {gpu["uuid"]: gpu["id"] for gpu in story.gpus()} == ids


def test_a_lost_card_that_comes_back_is_well_again_under_its_own_row(rig, host):
    card, _other = host.add_card(H200), host.add_card(H200)
    story = rig()
    [before] = [gpu["id"] for gpu in settled(story, 2) if gpu["uuid"] == card.uuid]
    card.lose()
    story.until(lambda: states(story)[card.uuid][0], lambda state: state == "lost")
    card.recover()
    story.until(lambda: states(story)[card.uuid], lambda state: state == ("ok", "", 0))
    assert story.gpu(card.uuid)["id"] == before
    story.until(lambda: story.server()["state"], lambda state: state == "ready")


def test_a_hanging_card_does_not_stop_the_heartbeat_or_hide_its_neighbour(rig, host):
    stuck, well = host.add_card(H200), host.add_card(H200)
    story = rig()
    settled(story, 2)
    stuck.hang()
    story.until(lambda: states(story)[stuck.uuid][:2], lambda state: state == ("unknown", "not_answering"))
    well.set(temperature_celsius=47)
    story.until(lambda: story.latest(well.uuid)["temperature_celsius"], lambda value: value == 47)
    seen = story.server()["agent"]["last_seen_at"]
    story.until(lambda: story.server()["agent"]["last_seen_at"], lambda at: at > seen)
    stuck.recover()
    story.until(lambda: states(story)[stuck.uuid][0], lambda state: state == "ok")


def test_a_driver_that_never_answers_is_a_state_and_the_server_goes_on_reporting(rig, host):
    host.add_card(H200)
    host.hang()
    story = rig()
    story.until(lambda: story.server()["driver_state"], lambda state: state in {"unknown", "not_answering"}, seconds=60)
    seen = story.server()["agent"]["last_seen_at"]
    story.until(lambda: story.server()["agent"]["last_seen_at"], lambda at: at is not None and at != seen)
    host.recover()
    settled(story, 1)
    assert story.server()["driver_state"] == "ok"


def test_a_mismatch_keeps_known_cards_listed_as_unknown_and_says_what_to_do(rig, host):
    card = host.add_card(H200)
    story = rig()
    settled(story, 1)
    story.stop()
    host.mismatch()
    story.start()
    story.until(lambda: story.server()["driver_state"], lambda state: state == "version_mismatch")
    server = story.server()
    assert "reboot" in server["driver_detail"]
    assert server["driver_advice"]["next_step"]
    assert states(story)[card.uuid][0] == "unknown"
    assert story.gpu(card.uuid)["activity"] == "no_data"
    host.recover()
    settled(story, 1)


def test_a_driver_that_does_not_start_is_a_state_with_a_sentence_until_it_does(rig, host):
    host.add_card(H200)
    host.unload()
    story = rig()
    for code, state in ((9, "not_loaded"), (4, "no_permission"), (999, "error")):
        host.fail_init(code)
        server = story.until(story.server, lambda server, state=state: server["driver_state"] == state)
        assert server["driver_detail"]
        assert server["driver_advice"]["next_step"]
        assert story.gpus() == []
    host.recover()
    settled(story, 1)


def test_a_machine_without_the_library_is_a_state_with_the_next_step(tell, tmp_path):
    story = tell(FLEETDECK_NVML_LIBRARY=str(tmp_path / "not-here.so"))
    server = story.until(story.server, lambda server: server["driver_state"] == "no_library")
    assert "install the driver" in server["driver_detail"]
    assert server["agent"]["last_seen_at"]


def test_a_driver_without_cards_is_a_state(rig):
    story = rig()
    server = story.until(story.server, lambda server: server["driver_state"] == "no_gpu")
    assert (server["gpus_known"], server["gpu_health"]) == (0, "unknown")


def test_a_refused_card_is_counted_and_its_neighbour_told(rig, host):
    refused, well = host.add_card(H200), host.add_card(H200)
    refused.refuse()
    story = rig()
    server = story.until(story.server, lambda server: "no handle" in server["driver_detail"])
    assert "1 of 2 cards" in server["driver_detail"]
    assert states(story)[well.uuid][0] == "ok"
    story.until(lambda: story.latest(well.uuid).get("power_watts"), lambda value: value == pytest.approx(77.7))


def test_a_container_that_loses_its_devices_leaves_cards_unknown_and_finds_them_again(rig, host):
    card = host.add_card(H200)
    story = rig()
    settled(story, 1)
    host.fail_calls(999)
    story.until(lambda: story.latest(card.uuid).get("power_watts"), lambda value: value is None)
    host.recover()
    story.until(lambda: story.latest(card.uuid).get("power_watts"), lambda value: value == pytest.approx(77.7))
