"""What is read of cards of different kinds and ages, through unmodified pynvml."""

import pynvml
import pytest

from fleet.agent.host.processes import ProcessIdentity
from fleet.agent.nvml import processes as processes_module
from fleet.agent.nvml.processes import ProcessReader
from fleet.agent.nvml.readings import Readings
from fleet.simulation.cards import A100, H100, H200, L40S, RTX_4090, T4
from fleet.simulation.nvml import Process

MIB = 1 << 20


def only(readings):
    (reading,) = readings.values()
    return reading


def test_a_datacenter_card_gives_everything_in_the_driver_s_units(host, watch):
    card = host.add_card(H200)
    card.set(
        utilization_percent=97,
        memory_busy_percent=8,
        memory_used_bytes=32362 * MIB,
        power_milliwatts=627_400,
        temperature_celsius=52,
        memory_temperature_celsius=42,
        sm_clock_mhz=1980,
        memory_clock_mhz=3201,
        encoder_percent=11,
        decoder_percent=22,
        clock_event_reasons=0x4,
        performance_state=0,
        energy_millijoules=5_000_000_123,
        power_violation_ns=17,
        thermal_violation_ns=18,
        pcie_tx_bytes=1_000,
        pcie_rx_bytes=2_000,
        nvlink_tx_kib=3_000,
        nvlink_rx_kib=4_000,
    )
    sample = only(watch().round()).sample
    assert sample.utilization_percent == 97
    assert sample.memory_busy_percent == 8
    assert sample.memory_used_bytes == 32362 * MIB, "without the reserved part: the second version of the call"
    assert sample.power_milliwatts == 627_400
    assert sample.energy_millijoules == 5_000_000_123
    assert (sample.temperature_celsius, sample.memory_temperature_celsius) == (52, 42)
    assert (sample.sm_clock_mhz, sample.memory_clock_mhz) == (1980, 3201)
    assert (sample.encoder_percent, sample.decoder_percent) == (11, 22)
    assert sample.clock_event_reasons == 0x4
    assert sample.performance_state == 0
    assert (sample.power_violation_ns, sample.thermal_violation_ns) == (17, 18)
    assert (sample.pcie_tx_bytes, sample.pcie_rx_bytes) == (1_000, 2_000)
    assert (sample.nvlink_tx_kib, sample.nvlink_rx_kib) == (3_000, 4_000)


def test_facts_are_read_once_and_name_the_limits_of_the_card_itself(host, watch):
    host.add_card(H200)
    watched = watch()
    facts = only(watched.round()).facts
    assert facts.name == "NVIDIA H200"
    assert (facts.architecture, facts.compute_capability) == ("Hopper", "9.0")
    assert facts.memory_total_bytes == 143771 * MIB
    assert facts.memory_reserved_bytes == 614 * MIB
    assert facts.power_limit_milliwatts == 700_000
    assert (facts.temperature_maximum_celsius, facts.temperature_slowdown_celsius) == (87, 89)
    assert facts.temperature_shutdown_celsius == 95
    assert (facts.pcie_generation_maximum, facts.pcie_width_maximum) == (5, 16)
    assert facts.nvlink_links == 18
    assert (facts.ecc_mode, facts.mig_mode) == (True, False)
    assert facts.pci_bus_id == "0000:19:00.0"
    host.forget_calls()
    watched.round()
    assert not host.calls().get("nvmlDeviceGetName")


def test_a_consumer_card_lacks_readings_each_with_its_reason_and_none_is_zero(host, watch):
    card = host.add_card(RTX_4090)
    card.set(fan_percent=0)
    reading = only(watch().round())
    assert reading.state == "ok"
    assert reading.sample.memory_temperature_celsius is None
    assert reading.sample.nvlink_tx_kib is None
    assert reading.sample.sm_activity_percent is None
    assert reading.sample.fan_percent == 0, "a fan that stands still is a reading"
    assert reading.facts.serial == ""
    missing = reading.unsupported
    for name in ("memory_temperature_celsius", "nvlink_tx_kib", "sm_activity_percent", "serial"):
        assert missing[name] == "not_supported", name
    assert "fan_percent" not in missing
    assert not [name for name in missing if name.startswith("_")]


def test_what_a_card_lacks_is_not_asked_each_time(host, watch):
    host.add_card(L40S)
    watched = watch()
    watched.round()
    host.forget_calls()
    for _ in range(4):
        watched.round()
    calls = {name for name, count in host.calls().items() if count}
    assert "nvmlDeviceGetFanSpeed" not in calls
    assert "nvmlGpmSampleGet" not in calls
    assert host.calls()["nvmlDeviceGetPowerUsage"] == 4


def test_blocking_pcie_calls_are_made_only_when_asked_for(host, watch):
    card = host.add_card(RTX_4090)
    card.slow("pcie_tx_kib_per_second", 0.0)
    card.slow("pcie_rx_kib_per_second", 0.0)
    watched = watch()
    watched.round()
    assert not host.calls().get("nvmlDeviceGetPcieThroughput")
    card.set(pcie_tx_kib_per_second=1024, pcie_rx_kib_per_second=2048)
    first = only(watched.round(is_pcie_wanted=True)).sample
    second = only(watched.round(is_pcie_wanted=True)).sample
    seconds = (second.monotonic_ms - first.monotonic_ms) / 1000
    assert second.pcie_tx_bytes - first.pcie_tx_bytes == pytest.approx(seconds * 1024 * 1024, abs=2)
    assert second.pcie_rx_bytes - first.pcie_rx_bytes == pytest.approx(seconds * 2048 * 1024, abs=2)


def test_cards_with_byte_counters_are_never_asked_the_blocking_way(host, watch):
    host.add_card(H200)
    watch().round(is_pcie_wanted=True)
    assert not host.calls().get("nvmlDeviceGetPcieThroughput")


def test_one_failing_reading_leaves_the_others(host, watch):
    card = host.add_card(H200)
    card.set(temperature_celsius=61)
    watched = watch()
    watched.round()
    card.fail("power_milliwatts", pynvml.NVML_ERROR_UNKNOWN)
    reading = only(watched.round())
    assert reading.sample.power_milliwatts is None
    assert reading.sample.temperature_celsius == 61
    assert "power_milliwatts" not in reading.unsupported, "once is a gap"
    watched.round()
    assert only(watched.round()).unsupported["power_milliwatts"] == "unknown_error"
    card.heal("power_milliwatts")
    reading = only(watched.round())
    assert reading.sample.power_milliwatts is not None
    assert "power_milliwatts" not in reading.unsupported


def test_a_card_that_wants_a_reset_is_degraded_and_keeps_its_name(host, watch):
    card, neighbour = host.add_card(H200), host.add_card(H200)
    watched = watch()
    watched.round()
    for name in ("power_milliwatts", "utilization_percent"):
        card.fail(name, pynvml.NVML_ERROR_RESET_REQUIRED)
    readings = watched.round()
    assert (readings[card.uuid].state, readings[card.uuid].reason) == ("degraded", "reset_required")
    assert readings[card.uuid].sample.utilization_percent is None
    assert readings[neighbour.uuid].state == "ok"
    card.heal("power_milliwatts")
    card.heal("utilization_percent")
    assert watched.round()[card.uuid].state == "ok"


def test_gpm_gives_means_between_two_rounds_on_cards_that_have_it(host, watch):
    card = host.add_card(H200)
    card.set(gpm_sm_millipercent=83_400, gpm_tensor_millipercent=50_100, gpm_dram_millipercent=43_700)
    watched = watch()
    assert only(watched.round()).sample.sm_activity_percent is None, "one sample is no mean"
    sample = only(watched.round()).sample
    assert sample.sm_activity_percent == pytest.approx(83.4)
    assert sample.tensor_activity_percent == pytest.approx(50.1)
    assert sample.dram_activity_percent == pytest.approx(43.7)


def test_gpm_that_is_refused_has_that_reason(host, watch):
    card = host.add_card(H200)
    card.fail("gpm", pynvml.NVML_ERROR_NO_PERMISSION)
    assert only(watch().round()).unsupported["sm_activity_percent"] == "no_permission"


def test_health_comes_with_the_slow_tier_only(host, watch):
    card = host.add_card(H200)
    card.set(
        ecc_corrected_volatile=1,
        ecc_uncorrected_aggregate=4,
        remapped_rows_correctable=2,
        remapped_rows_pending=1,
        recovery_action=1,
        pcie_replays=6,
        pcie_width=8,
        nvlink_replay_errors=3,
        nvlink_crc_data_errors=4,
        nvlink_inactive_mask=0b11,
        power_limit_enforced_milliwatts=500_000,
    )
    watched = watch()
    health = only(watched.round()).health
    assert (health.ecc_corrected_volatile, health.ecc_uncorrected_aggregate) == (1, 4)
    assert health.remapped_rows_correctable == 2
    assert (health.remapped_rows_pending, health.remapped_rows_failure) == (True, False)
    assert health.recovery_action == 1
    assert (health.pcie_replays, health.pcie_width) == (6, 8)
    assert health.nvlink_errors == 7
    assert health.nvlink_active_links == 16
    assert health.enforced_power_limit_milliwatts == 500_000
    assert health.persistence_mode is True
    assert only(watched.round()).health is None
    assert only(watched.slow_round()).health is not None


def test_retired_pages_of_an_older_card(host, watch):
    card = host.add_card(T4)
    card.set(retired_pages_single_bit=1, retired_pages_double_bit=2, retired_pages_pending=1)
    health = only(watch().round()).health
    assert (health.retired_pages_single_bit, health.retired_pages_double_bit) == (1, 2)
    assert health.retired_pages_pending is True
    assert health.remapped_rows_pending is None


def test_the_slow_tiers_of_eight_cards_do_not_all_come_in_one_round(host, watch):
    for _ in range(8):
        host.add_card(H200)
    watched = watch()
    watched.round()
    due = {round(card._next_slow) for card in watched.driver._session.cards}
    assert len(due) >= 5


def test_an_old_driver_is_read_by_its_older_calls(legacy_host, watch):
    card = legacy_host.add_card(T4)
    card.set(utilization_percent=44, memory_used_bytes=1000 * MIB, clock_event_reasons=0x4)
    card.set_processes([Process(pid=9, memory_bytes=MIB)])
    reading = only(watch().round())
    assert reading.sample.utilization_percent == 44
    assert reading.sample.memory_used_bytes == (1000 + 388) * MIB, "the older call counts reserved memory as used"
    assert reading.unsupported["memory_reserved_bytes"] == "function_not_found"
    assert reading.sample.clock_event_reasons == 0x4
    assert [process.pid for process in reading.processes] == [9]


# ---- processes


def test_processes_are_the_union_of_three_lists(host, watch):
    card = host.add_card(H200)
    card.set_processes(
        [
            Process(pid=41, memory_bytes=10 << 30, sm_percent=80),
            Process(pid=42, kinds=("graphics", "compute"), memory_bytes=None),
            Process(pid=43, kinds=("mps",), memory_bytes=7),
        ]
    )
    people = {41: ProcessIdentity("python train.py", "alice", "0123456789ab", 1_700_000_000_000)}
    reading = only(watch(describe=people.get).round())
    by_pid = {process.pid: process for process in reading.processes}
    assert reading.processes_visibility == "visible"
    assert [process.pid for process in reading.processes] == [41, 43, 42], "the largest first"
    assert by_pid[41].memory_used_bytes == 10 << 30
    assert by_pid[41].sm_percent == 80
    assert (by_pid[41].name, by_pid[41].user, by_pid[41].container) == ("python train.py", "alice", "0123456789ab")
    assert sorted(by_pid[42].kinds) == ["compute", "graphics"]
    assert by_pid[42].memory_used_bytes is None
    assert by_pid[43].kinds == ["mps"]
    assert by_pid[42].name == ""


@pytest.mark.parametrize(("has_host_pids", "visibility"), [(True, "visible"), (False, "hidden"), (None, "unknown")])
def test_an_empty_list_says_whether_it_can_be_believed(host, watch, has_host_pids, visibility):
    host.add_card(H200)
    reading = only(watch(has_host_pids=has_host_pids).round())
    assert reading.processes == []
    assert reading.processes_visibility == visibility


def test_a_list_that_is_refused_is_unknown_not_empty(host, watch):
    card = host.add_card(H200)
    card.fail("processes", pynvml.NVML_ERROR_NO_PERMISSION)
    reading = only(watch().round())
    assert reading.processes_visibility == "unknown"
    assert reading.sample is not None


class _Row:
    def __init__(self, pid, memory):
        self.pid, self.usedGpuMemory = pid, memory


def test_a_driver_that_moved_the_members_of_its_structure_is_read_by_the_older_one(monkeypatch):
    for kind in ("Compute", "Graphics", "MPSCompute"):
        swapped = [_Row(2_147_483_648, 4242)] if kind == "Compute" else []
        right = [_Row(4242, 2 << 30)] if kind == "Compute" else []
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        monkeypatch.setattr(processes_module.pynvml, name, lambda handle, rows=swapped: rows)
        monkeypatch.setattr(processes_module.pynvml, f"{name}_v2", lambda handle, rows=right: rows)
    monkeypatch.setattr(processes_module, "_utilization", lambda handle, since: [])
    (process,) = ProcessReader(None, Readings(), lambda pid: None).read(80 << 30)
    assert (process.pid, process.memory_used_bytes) == (4242, 2 << 30)


def test_a_list_that_makes_no_sense_in_any_version_is_not_told(monkeypatch):
    for kind in ("Compute", "Graphics", "MPSCompute"):
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        for version in ("", "_v2"):
            monkeypatch.setattr(processes_module.pynvml, name + version, lambda handle: [_Row(7, 999 << 30)])
    assert ProcessReader(None, Readings(), lambda pid: None).read(80 << 30) is None


# ---- MIG


def divided(host, profile=H100):
    card = host.add_card(profile)
    card.set(utilization_percent=50, power_milliwatts=433_780, memory_used_bytes=11125 * MIB)
    instances = card.divide(
        [
            {"profile": "3g.40gb", "memory_mib": 40448, "streaming_multiprocessors": 60, "slices": 3},
            {"profile": "1g.10gb", "memory_mib": 9984},
        ]
    )
    instances[0].set(memory_used_bytes=5 << 30)
    instances[0].set_processes([Process(pid=77, memory_bytes=5 << 30)])
    return card, instances


def test_a_divided_card_has_no_utilisation_and_keeps_the_rest(host, watch):
    card, _ = divided(host)
    reading = watch().round()[card.uuid]
    assert reading.facts.mig_mode is True
    assert reading.sample.utilization_percent is None
    assert reading.unsupported["utilization_percent"] == "mig_mode"
    assert reading.unsupported["memory_busy_percent"] == "mig_mode"
    assert reading.sample.power_milliwatts == 433_780
    assert reading.sample.memory_used_bytes == 11125 * MIB


def test_instances_are_listed_under_their_card_with_their_own_memory_and_processes(host, watch):
    card, (large, small) = divided(host)
    readings = watch().round()
    assert list(readings) == [card.uuid, large.uuid, small.uuid]
    assert readings[large.uuid].parent_uuid == card.uuid
    assert readings[large.uuid].facts.name == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert readings[large.uuid].facts.memory_total_bytes == 40448 * MIB
    assert readings[large.uuid].sample.memory_used_bytes == 5 << 30
    assert [process.pid for process in readings[large.uuid].processes] == [77]
    assert readings[small.uuid].sample.memory_used_bytes == 0


def test_how_busy_an_instance_was_is_told_by_gpm_as_a_share_of_it(host, watch):
    _card, (large, small) = divided(host)
    for instance, share in ((large, 64_000), (small, 0)):
        shares = {"gpm_sm": share, "gpm_tensor": share // 2, "gpm_dram": share // 4}
        instance.set(**{f"{name}_millipercent": value for name, value in shares.items()})
    watched = watch()
    assert watched.round()[large.uuid].sample.sm_activity_percent is None, "one sample is no mean"
    readings = watched.round()
    busy, idle = readings[large.uuid].sample, readings[small.uuid].sample
    assert (busy.sm_activity_percent, busy.tensor_activity_percent, busy.dram_activity_percent) == (64.0, 32.0, 16.0)
    assert (idle.sm_activity_percent, idle.dram_activity_percent) == (0.0, 0.0)
    assert "sm_activity_percent" not in readings[large.uuid].unsupported


def test_an_instance_of_a_card_without_gpm_says_so(host, watch):
    _card, (large, _small) = divided(host, A100)
    watched = watch()
    watched.round()
    reading = watched.round()[large.uuid]
    assert reading.sample.sm_activity_percent is None
    assert reading.sample.memory_used_bytes == 5 << 30
    assert reading.unsupported["sm_activity_percent"] == "not_supported"


def test_a_card_that_is_put_together_again_while_we_watch_answers_for_itself(host, watch):
    card, _ = divided(host)
    watched = watch()
    watched.round()
    card.merge()
    readings = watched.slow_round()
    assert list(readings) == [card.uuid], "an instance that was taken apart is not missing"
    reading = only(watched.round())
    assert reading.sample.utilization_percent == 50
    assert "utilization_percent" not in reading.unsupported


def test_instances_share_the_fate_of_their_card(host, watch):
    card, (large, _) = divided(host)
    neighbour = host.add_card(H100)
    watched = watch()
    watched.round()
    card.lose()
    readings = watched.round()
    assert readings[card.uuid].state == readings[large.uuid].state == "lost"
    assert readings[large.uuid].parent_uuid == card.uuid
    assert readings[neighbour.uuid].state == "ok"
