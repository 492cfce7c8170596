"""How a simulated card answers work: consistent power, heat, clocks, limits and counters."""

import numpy as np
import pynvml
import pytest

from fleet.simulation.cards import A100, H200, L20, PROFILES, RTX_4090, T4
from fleet.simulation.load import Demand
from fleet.simulation.nvml.layout import READING_INDEX
from fleet.simulation.physics import CardModel

WORK = Demand(utilization=0.95, intensity=0.92, memory=0.9, has_context=True)
PARKED = Demand(memory=0.9, has_context=True)
NOTHING = Demand()


@pytest.fixture
def model(host):
    def make(profile, **options):
        return CardModel(host.add_card(profile), profile, np.random.default_rng(3), **options)

    return make


def run(model, demand, seconds):
    """Go on second by second; return what the card answered each time, by reading."""
    seen = []
    for _ in range(seconds):
        model.step(demand, 1.0)
        seen.append({name: model.card.get(name) for name in READING_INDEX})
    return seen


def rate(card, name):
    return card._reading(name).rate_per_second


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_rest_context_and_work_are_three_levels_of_power(model, profile):
    card = model(profile)
    rest, parked, work = (run(card, demand, 30)[-1]["power_milliwatts"] for demand in (NOTHING, PARKED, WORK))
    assert rest == pytest.approx(profile.idle_watts * 1000, rel=0.03)
    assert parked == pytest.approx(profile.context_watts * 1000, rel=0.03)
    assert work > 0.75 * profile.full_watts * 1000
    assert work <= profile.limit_watts * 1005


def test_power_follows_work_within_seconds_and_temperature_within_minutes(model):
    card = model(H200)
    seen = run(card, WORK, 200)
    power, heat = ([each[name] for each in seen] for name in ("power_milliwatts", "temperature_celsius"))
    assert power[5] > 0.9 * power[-1]
    assert heat[5] < heat[-1] - 15
    assert heat[150] == pytest.approx(heat[-1], abs=2)
    assert H200.temperature[1] - 8 < heat[-1] < H200.temperature[1] + 5


def test_energy_grows_as_fast_as_power_says(model):
    card = model(H200)
    last = run(card, WORK, 20)[-1]
    assert rate(card.card, "energy_millijoules") == pytest.approx(last["power_milliwatts"], abs=1)


def test_a_fully_used_card_is_held_at_its_limit_and_says_so(model):
    card = model(A100)
    seen = run(card, Demand(utilization=1.0, intensity=1.0, memory=0.9, has_context=True), 40)[10:]
    capped = [each for each in seen if each["clock_event_reasons"] & 0x4]
    assert len(capped) > len(seen) / 2
    assert all(each["sm_clock_mhz"] <= A100.sm_clock[1] for each in capped)
    assert max(each["power_milliwatts"] for each in seen) <= A100.limit_watts * 1005
    assert rate(card.card, "power_violation_ns") in (0.0, 0.85e9)


def test_a_badly_cooled_card_throttles_and_never_shuts_down(model):
    card = model(A100, cooling=2.5)
    seen = run(card, WORK, 600)
    reasons = {each["clock_event_reasons"] & 0x68 for each in seen}
    assert 0x20 in reasons
    assert any(mask & 0x48 == 0x48 for mask in reasons)
    hot = [each for each in seen if each["clock_event_reasons"] & 0x48]
    assert all(each["sm_clock_mhz"] < 0.6 * A100.sm_clock[1] for each in hot)
    assert max(each["temperature_celsius"] for each in seen) < A100.thresholds[2]
    assert max(each["temperature_celsius"] for each in seen) >= A100.thresholds[1]


def test_a_well_cooled_card_does_not_throttle(model):
    seen = run(model(H200), WORK, 400)
    assert not any(each["clock_event_reasons"] & 0x68 for each in seen)


def test_a_card_at_rest_says_idle_and_a_parked_one_does_not(model):
    assert run(model(H200), NOTHING, 3)[-1]["clock_event_reasons"] == 0x1
    parked = run(model(H200), PARKED, 3)[-1]
    assert (parked["clock_event_reasons"], parked["sm_clock_mhz"], parked["performance_state"]) == (0, 1980, 0)


def test_a_geforce_rests_in_p8_on_a_slow_link_and_wakes_up(model):
    card = model(RTX_4090)
    rest, work = (run(card, demand, 3)[-1] for demand in (PARKED, WORK))
    assert (rest["performance_state"], rest["pcie_generation"], rest["sm_clock_mhz"]) == (8, 1, 210)
    assert (work["performance_state"], work["pcie_generation"]) == (2, 4)


def test_fans_stand_still_when_cool_and_turn_when_hot(model):
    card = model(RTX_4090)
    assert run(card, NOTHING, 2)[-1]["fan_percent"] == 0
    assert run(card, WORK, 200)[-1]["fan_percent"] > 40


def test_what_a_model_lacks_stays_lacking_under_load(model):
    last = run(model(T4), WORK, 5)[-1]
    lacking = ("memory_temperature_celsius", "fan_percent", "nvlink_tx_kib", "gpm_sm_millipercent", "pcie_tx_bytes")
    assert [last[name] for name in lacking] == [None] * len(lacking)


def test_a_reading_that_fails_goes_on_failing_while_the_card_works(model):
    card = model(L20)
    card.card.fail("power_milliwatts", pynvml.NVML_ERROR_UNKNOWN)
    assert run(card, WORK, 3)[-1]["power_milliwatts"] is None
    card.card.heal("power_milliwatts")
    assert run(card, WORK, 10)[-1]["power_milliwatts"] > 0.75 * L20.full_watts * 1000


def test_media_engines_draw_power_though_the_card_is_hardly_used(model):
    video = Demand(utilization=0.06, intensity=0.15, memory=0.1, has_context=True, encoder=0.7, decoder=0.7)
    seen = run(model(L20), video, 30)[-1]
    assert seen["utilization_percent"] == 6
    assert seen["decoder_percent"] == 70
    assert seen["power_milliwatts"] > L20.context_watts * 1000


def test_a_reset_card_is_cold_and_its_counters_are_zero(model):
    card = model(RTX_4090)
    run(card, WORK, 100)
    card.reset()
    run(card, NOTHING, 1)
    assert card.card.get("energy_millijoules") < RTX_4090.idle_watts * 1000
    assert card.card.get("temperature_celsius") == pytest.approx(RTX_4090.temperature[0], abs=1)
