"""The work that simulated cards do."""

import numpy as np
import pytest

from fleet.simulation.load import Idle, Inference, Parked, Training, Video, daily_curve

NOON_UTC = 1_764_504_000.0


def rng(seed=1):
    return np.random.default_rng(seed)


def day_of(load, *, start=NOON_UTC, seconds=86_400, step=10.0):
    return [load.step(start + number * step, step) for number in range(int(seconds / step))]


LOADS = {
    "idle": Idle,
    "parked": Parked,
    "standby": lambda: Parked(probe_every_seconds=300),
    "training": lambda: Training(rng()),
    "inference": lambda: Inference(rng()),
    "video": lambda: Video(rng()),
}


@pytest.mark.parametrize("make", LOADS.values(), ids=LOADS)
def test_every_demand_of_a_day_is_a_share(make):
    for demand in day_of(make()):
        for field in ("utilization", "intensity", "memory", "encoder", "decoder", "nvlink"):
            assert 0 <= getattr(demand, field) <= 1


@pytest.mark.parametrize("make", LOADS.values(), ids=LOADS)
def test_the_same_seed_and_clock_give_the_same_day(make):
    assert day_of(make(), seconds=3600) == day_of(make(), seconds=3600)


def test_training_is_high_with_dips_at_checkpoints_that_cards_of_a_job_share():
    first, second = (day_of(Training(rng(seed), job=5), step=1.0, seconds=14_400) for seed in (1, 2))
    high = [demand.utilization > 0.8 for demand in first]
    assert 0.85 < sum(high) / len(high) < 0.99
    dips = [[demand.utilization < 0.3 for demand in demands] for demands in (first, second)]
    assert sum(dips[0]) > 100
    assert dips[0] == dips[1]


def test_a_training_job_starts_again_every_few_hours_and_lets_go_of_its_memory():
    demands = day_of(Training(rng(), job=5))
    without = [number for number, demand in enumerate(demands) if not demand.has_context]
    assert without
    assert all(demands[number].utilization == 0 and demands[number].memory == 0 for number in without)


def test_inference_follows_the_hours_where_its_users_live():
    def mean_at(hour, offset):
        load = Inference(rng(), utc_offset_hours=offset, bursts_per_hour=0)
        demands = day_of(load, start=hour * 3600.0, seconds=3600, step=1.0)
        return sum(demand.utilization for demand in demands) / len(demands)

    assert mean_at(15, 0) > 2 * mean_at(5, 0)
    assert mean_at(7, 8) > 2 * mean_at(21, 8)  # 15:00 and 05:00 in Shanghai


def test_inference_has_bursts():
    quiet, bursty = (day_of(Inference(rng(), bursts_per_hour=rate), step=1.0, seconds=7200) for rate in (0, 20))
    assert max(demand.utilization for demand in bursty) > max(demand.utilization for demand in quiet) - 0.05
    assert sum(demand.utilization > 0.9 for demand in bursty) > sum(demand.utilization > 0.9 for demand in quiet)


def test_a_parked_model_holds_memory_and_does_nothing():
    demands = day_of(Parked(memory=0.85))
    assert {(demand.utilization, demand.memory, demand.has_context) for demand in demands} == {(0.0, 0.85, True)}


def test_a_standby_answers_a_probe_once_in_five_minutes():
    demands = day_of(Parked(probe_every_seconds=300), step=1.0, seconds=3000)
    assert sum(demand.utilization > 0 for demand in demands) == 10


def test_video_works_the_media_engines_and_hardly_the_card():
    demands = day_of(Video(rng()), step=10.0)
    assert max(demand.utilization for demand in demands) < 0.15
    assert min(demand.decoder for demand in demands) > 0.05
    assert max(demand.decoder for demand in demands) > 0.7


@pytest.mark.parametrize("hour", range(24))
def test_the_daily_curve_is_a_share_everywhere(hour):
    assert 0.05 < daily_curve(hour * 3600.0, 0) <= 1
