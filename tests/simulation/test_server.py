"""Simulated servers and the fleet that they make."""

from collections import Counter

import pytest

from fleet.simulation.cards import A100, RTX_4090
from fleet.simulation.nvml.layout import READINGS
from fleet.simulation.plan import TEMPLATES, CardPlan, ServerPlan, fleet_plan
from fleet.simulation.server import FIRST_PID, SimulatedServer
from tests.nvml import reading

NOW = 1_764_504_000.0


@pytest.fixture
def server(tmp_path):
    def make(plan, seed=1):
        return SimulatedServer(plan, tmp_path, seed=seed, now=NOW)

    return make


def one_card(plan, name="rig-01"):
    return ServerPlan(
        name=name,
        provider="P",
        region="R",
        utc_offset_hours=0,
        driver_version="570.1",
        cuda_version=12080,
        cards=(plan,),
    )


def steady(server):
    """Return every reading that does not grow by itself, of every card."""
    counters = {"energy_millijoules", "pcie_tx_bytes", "pcie_rx_bytes", "nvlink_tx_kib", "nvlink_rx_kib"}
    names = [name for name in READINGS if name not in counters and not name.endswith("_ns")]
    return [{name: runner.card.get(name) for name in names} for runner in server.runners]


def test_the_default_fleet_has_40_gpus_of_5_models_at_several_providers():
    plans = fleet_plan(6)
    assert sum(len(plan.cards) for plan in plans) == 40
    assert len({card.profile.name for plan in plans for card in plan.cards}) == 5
    assert len({plan.provider for plan in plans}) == 6
    loads = Counter(card.load for plan in plans for card in plan.cards)
    assert set(loads) == {"training", "inference", "parked", "standby", "idle", "video"}
    cards = [card for plan in plans for card in plan.cards]
    assert any(card.instances for card in cards)
    assert any(card.cooling > 1.5 for card in cards)
    assert any(card.lost_every_seconds for card in cards)


@pytest.mark.parametrize("count", [1, 8, 40])
def test_a_fleet_of_any_size_has_a_name_for_each_server(count):
    names = [plan.name for plan in fleet_plan(count)]
    assert len(set(names)) == len(names) == count


@pytest.mark.parametrize("number", range(len(TEMPLATES)))
def test_every_server_of_the_templates_runs(server, number):
    running = server(fleet_plan(len(TEMPLATES))[number])
    for second in range(5):
        running.step(NOW + second, 1.0)
    assert all(runner.card.get("temperature_celsius") > 20 for runner in running.runners)


def test_the_same_seed_gives_the_same_readings_and_another_seed_does_not(tmp_path):
    def readings(seed, folder):
        (tmp_path / folder).mkdir()
        running = SimulatedServer(fleet_plan(3)[2], tmp_path / folder, seed=seed, now=NOW)
        for second in range(30):
            running.step(NOW + second, 1.0)
        return steady(running)

    first, again, other = readings(1, "a"), readings(1, "b"), readings(2, "c")
    assert first == again
    assert first != other


def test_a_falling_card_gives_xid_79_is_lost_goes_and_comes_back_with_counters_at_zero(server, library):
    running = server(one_card(CardPlan(profile=RTX_4090, load="training", process="train", lost_every_seconds=100)))
    card = running.runners[0].card
    with reading(library, running.host) as nvml:
        nvml.nvmlInit()
        event_set = nvml.nvmlEventSetCreate()
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, event_set)
        story = []
        for second in range(400):
            running.step(NOW + second, 1.0)
            state = "gone" if card.is_removed else "lost" if card.is_lost else "well"
            if not story or story[-1] != state:
                story.append(state)
            if state == "lost" and second > 0 and len(story) == 2:
                assert nvml.nvmlEventSetWait_v2(event_set, 100).eventData == 79
                assert card.get("recovery_action") == 1
                story.append("told")
        nvml.nvmlEventSetFree(event_set)
    assert story[:6] == ["well", "lost", "told", "lost", "gone", "well"]
    assert card.get("recovery_action") == 0
    assert card.get("energy_millijoules") < 5_000_000_000


def test_a_divided_card_does_not_tell_its_use_but_its_power_follows_its_instances(server):
    running = server(fleet_plan(2)[1])
    runner = next(each for each in running.runners if each.instances)
    running.step(NOW, 1.0)
    assert runner.card.get("utilization_percent") is None
    assert runner.card.get("power_milliwatts") > runner.plan.profile.idle_watts * 1000
    held = [each.instance.get("memory_used_bytes") for each in runner.instances]
    assert held[0] > 0
    assert held[2] == 0
    assert runner.card.get("memory_used_bytes") == pytest.approx(sum(held), rel=0.02)


def test_processes_come_with_a_context_and_can_hide_their_memory(server, library):
    open_card = server(one_card(CardPlan(profile=RTX_4090, load="parked", process="vllm"), "open"))
    hidden = server(
        one_card(CardPlan(profile=RTX_4090, load="parked", process="vllm", is_process_memory_hidden=True), "hidden")
    )
    idle = server(one_card(CardPlan(profile=RTX_4090, process="vllm"), "idle"))
    seen = []
    for running in (open_card, hidden, idle):
        running.step(NOW, 1.0)
        with reading(library, running.host) as nvml:
            nvml.nvmlInit()
            handle = nvml.nvmlDeviceGetHandleByIndex(0)
            seen.append([each.usedGpuMemory for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle)])
            if running is open_card:
                [process] = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
                assert process.pid >= FIRST_PID
                assert nvml.nvmlSystemGetProcessName(process.pid) == "vllm"
    assert seen[0][0] > 15 << 30
    assert seen[1:] == [[None], []]


def test_a_plan_can_change_single_readings(server):
    running = server(one_card(CardPlan(profile=A100, readings={"remapped_rows_correctable": 1, "pcie_width": 8})))
    running.step(NOW, 1.0)
    card = running.runners[0].card
    assert (card.get("remapped_rows_correctable"), card.get("pcie_width")) == (1, 8)


def test_driver_and_cuda_versions_are_the_plans(server, library):
    running = server(fleet_plan(3)[2])
    with reading(library, running.host) as nvml:
        nvml.nvmlInit()
        assert nvml.nvmlSystemGetDriverVersion() == "535.183.01"
        assert nvml.nvmlSystemGetNVMLVersion() == "12.535.183.01"
