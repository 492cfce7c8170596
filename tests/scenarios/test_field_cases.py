"""What went wrong for people who watch GPUs, replayed on simulated cards; see docs/field-cases.md for each case."""

import pytest

from fleet.simulation.cards import H200

MIB = 1 << 20
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def settled(story, count):
    return story.until(story.gpus, lambda gpus: len(gpus) == count and all(gpu["latest"] for gpu in gpus))


def faults_of(story, card):
    return {each["code"]: each for each in story.panel.results("faults/?limit=500") if each["gpu_uuid"] == card.uuid}


def test_f01_a_sentinel_for_not_available_is_no_temperature(mixed):
    latest = mixed.latest(mixed.odd)
    assert latest["memory_temperature_celsius"] is None
    assert latest["temperature_celsius"] == 28


def test_f03_and_f13_each_failing_reading_is_a_gap_of_its_own(mixed):
    """Whatever the error, the other readings of the card and the other cards go on."""
    errors = {"fan_percent": 999, "power_milliwatts": 4, "performance_state": 8, "sm_clock_mhz": 3}
    for name, code in errors.items():
        mixed.geforce.fail(name, code)
    try:
        metrics = ("fan_percent", "power_watts", "performance_state", "sm_clock_mhz")
        latest = mixed.story.until(
            lambda: mixed.latest(mixed.geforce), lambda latest: all(latest[name] is None for name in metrics)
        )
        assert latest["temperature_celsius"] == 38
        assert latest["memory_used_bytes"] == 0
        assert mixed.latest(mixed.busy)["power_watts"] == pytest.approx(627.4)
    finally:
        for name in errors:
            mixed.geforce.heal(name)
    mixed.story.until(lambda: mixed.latest(mixed.geforce)["fan_percent"], lambda value: value == 31)


def test_f05_a_burst_of_one_xid_is_one_fault_with_a_count(mixed):
    for _ in range(30):
        mixed.patient.xid(94)
    story = mixed.story
    fault = story.until(
        lambda: faults_of(story, mixed.patient).get(94), lambda fault: fault is not None and fault["count"] == 30
    )
    assert (fault["kind"], fault["source"]) == ("xid", "nvml")


def test_f08_xids_differ_in_severity(mixed):
    wanted = {64: "critical", 63: "warning", 45: "info", 145: "info"}
    for code in wanted:
        mixed.patient.xid(code)
    story = mixed.story
    found = story.until(lambda: faults_of(story, mixed.patient), lambda faults: wanted.keys() <= faults.keys())
    assert {code: found[code]["severity"] for code in wanted} == wanted
    assert found[64]["advice"]["next_step"]
    assert found[64]["pci_bus_id"].lower().startswith("0000:")


def test_f11_power_is_told_where_the_newer_ways_to_it_are_missing(mixed):
    """The average and instant fields of other drivers must not hide the reading that is there."""
    card = mixed.a10g
    card.fail("power_average_milliwatts")
    card.fail("power_instant_milliwatts")
    card.set(power_milliwatts=26_840)
    mixed.story.until(lambda: mixed.latest(card)["power_watts"], lambda value: value == pytest.approx(26.84))
    card.set(power_milliwatts=25_580, power_average_milliwatts=25_580, power_instant_milliwatts=25_580)
    mixed.story.until(lambda: mixed.latest(card)["power_watts"], lambda value: value == pytest.approx(25.58))


def test_f12_one_missing_sample_is_one_gap_and_the_card_stays(mixed):
    card, story = mixed.patient, mixed.story
    card.fail("temperature_celsius")
    story.until(lambda: mixed.latest(card)["temperature_celsius"], lambda value: value is None)
    card.heal("temperature_celsius")
    story.until(lambda: mixed.latest(card)["temperature_celsius"], lambda value: value == 28)
    assert "temperature_celsius" not in mixed.gpu(card)["unsupported"]
    assert mixed.latest(card)["power_watts"] is not None


def test_f14_f33_values_are_the_frame_buffers_and_exact(mixed):
    assert mixed.latest(mixed.busy)["memory_used_bytes"] / mixed.gpu(mixed.busy)["memory_total_bytes"] == pytest.approx(
        0.225, abs=0.001
    )
    a10g = mixed.gpu(mixed.a10g)
    assert (a10g["memory_total_bytes"], a10g["latest"]["memory_used_bytes"]) == (23028 * MIB, 22 * MIB)
    assert a10g["facts"]["bar1_total_bytes"] == 32768 * MIB
    assert (a10g["latest"]["power_watts"], a10g["latest"]["temperature_celsius"]) == (pytest.approx(25.58), 17)


def test_f15_f16_f35_a_divided_card_and_its_slices_are_never_mixed_up(mixed):
    card = mixed.gpu(mixed.divided)
    assert card["latest"]["memory_used_bytes"] / card["memory_total_bytes"] == pytest.approx(0.136, abs=0.001)
    slices = [each for each in mixed.story.gpus() if each["parent"] == card["id"]]
    assert len(slices) == 4
    for each in slices:
        assert each["latest"]["utilization_percent"] is None  # 60 multiprocessors are no 60 %
        assert each["latest"]["power_watts"] is None


def test_f18_cards_of_one_name_are_cards_of_their_own(mixed):
    alike = [gpu for gpu in mixed.story.gpus() if gpu["name"] == "NVIDIA H200"]
    assert len({gpu["uuid"] for gpu in alike}) == len(alike) == 4


def test_f19_cards_that_change_places_keep_their_values_and_their_own_limit(rig, host):
    cool, warm = host.add_card(H200, bus=0x10), host.add_card(H200, bus=0x20)
    cool.set(temperature_celsius=31, power_limit_enforced_milliwatts=160_000, power_limit_milliwatts=160_000)
    warm.set(temperature_celsius=71)
    story = rig()
    before = {gpu["uuid"]: (gpu["id"], gpu["index"]) for gpu in settled(story, 2)}
    assert [before[card.uuid][1] for card in (cool, warm)] == [0, 1]
    story.stop()
    cool.set(pci_bus=0x30)
    story.start()
    story.until(
        lambda: {gpu["uuid"]: gpu["index"] for gpu in story.gpus()}, lambda now: now == {cool.uuid: 1, warm.uuid: 0}
    )
    assert {gpu["uuid"]: gpu["id"] for gpu in story.gpus()} == {uuid: row for uuid, (row, _index) in before.items()}
    assert story.latest(cool.uuid)["temperature_celsius"] == 31
    assert story.latest(warm.uuid)["temperature_celsius"] == 71
    assert story.gpu(cool.uuid)["power_limit_watts"] == 160


def test_f21_memory_without_a_process_is_ghost_memory_and_a_quiet_model_is_not_free(mixed):
    mixed.patient.set(memory_used_bytes=8123 * MIB)
    try:
        mixed.story.until(lambda: mixed.gpu(mixed.patient)["activity"], lambda activity: activity == "ghost")
    finally:
        mixed.patient.set(memory_used_bytes=0)
    assert mixed.gpu(mixed.parked)["activity"] == "parked"


def test_f32_what_is_absent_is_missing_and_never_zero(mixed):
    gpu = mixed.gpu(mixed.partial)
    assert (gpu["name"], gpu["latest"]["temperature_celsius"]) == ("NVIDIA GeForce GTX 1070 Ti", 39)
    assert gpu["latest"]["memory_used_bytes"] == 300 * MIB
    missing = ("utilization_percent", "power_watts", "sm_clock_mhz", "fan_percent", "encoder_percent")
    assert [gpu["latest"][name] for name in missing] == [None] * len(missing)
    assert gpu["unsupported"]["power_milliwatts"] == "not_supported"
    assert gpu["power_limit_watts"] is None
    assert gpu["activity"] == "cannot_tell"
