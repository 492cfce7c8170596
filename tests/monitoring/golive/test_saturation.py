"""Steps of load: which comes next, when it is enough, what they add up to."""

import numpy as np
import pytest

from monitoring.golive.enums import Stop
from monitoring.golive.saturation import (
    LoadStep,
    Point,
    is_oversaturated,
    next_concurrency,
    saturation_of,
    stop_reason,
)
from monitoring.knee import Step, disagreeing, knee_of


def served(slots, service_ms=500.0, *, fails_from=None):
    """Take steps against a server with so many slots, until the rule says stop."""
    done = []
    while (concurrency := next_concurrency(done)) is not None:
        rate = min(concurrency, slots) / service_ms * 1000
        latency = concurrency / rate * 1000
        errors = 0.2 if fails_from is not None and concurrency >= fails_from else 0.0
        done.append(LoadStep(Step(concurrency, latency, rate), errors, rate if latency <= 1000 else 0.0))
    return done


def test_steps_double_until_throughput_no_longer_grows():
    done = served(8)
    assert [entry.step.concurrency for entry in done] == [1, 2, 4, 8, 16]
    found = saturation_of(done)
    assert (found.knee.concurrency, found.best, found.stopped_by) == (8, 8, Stop.PLATEAU)
    assert found.best_goodput_per_second == pytest.approx(16.0)
    assert found.contradictory == []


def test_steps_end_at_errors_and_at_the_largest():
    assert [entry.step.concurrency for entry in served(64, fails_from=4)] == [1, 2, 4]
    endless = served(10_000)
    assert endless[-1].step.concurrency == 256
    assert saturation_of(endless).stopped_by is Stop.MOST
    assert saturation_of(endless).knee is None


def test_a_step_that_only_fills_a_queue_is_the_last():
    done = [LoadStep(Step(1, 100, 10), 0.0, 10.0, is_oversaturated=True)]
    assert (next_concurrency(done), stop_reason(done)) == (None, Stop.OVERSATURATED)


def test_without_steps_there_is_nothing_to_tell():
    found = saturation_of([])
    assert (found.knee, found.best, found.stopped_by, next_concurrency([])) == (None, None, None, 1)


def points(seconds, *, arriving, served, seed=1):
    """An open load on a server: what arrives beyond what is served waits."""
    draw = np.random.default_rng(seed)
    waiting, found = 0.0, []
    for second in range(seconds):
        waiting = max(waiting + draw.poisson(arriving) - served, 0.0)
        found.append(Point(second, waiting, 300 * draw.lognormal(0, 0.2) + 1000 * waiting / served))
    return found


@pytest.mark.parametrize("seed", range(10))
def test_a_queue_that_only_grows_is_oversaturation_and_a_steady_one_is_not(seed):
    assert is_oversaturated(points(120, arriving=12, served=10, seed=seed))
    assert not is_oversaturated(points(120, arriving=7, served=10, seed=seed))


def test_oversaturation_needs_time_and_slow_first_tokens():
    growing = points(120, arriving=14, served=10)
    assert not is_oversaturated(growing[:25])
    assert not is_oversaturated([Point(point.at_seconds, point.in_flight, point.ttft_ms / 20) for point in growing])
    assert not is_oversaturated([])
    steady = [Point(point.at_seconds, 5.0, point.ttft_ms) for point in growing]
    assert not is_oversaturated(steady)


def test_only_the_last_two_minutes_count():
    past = points(120, arriving=14, served=10)
    calm = [Point(200 + second, 3.0, 300.0) for second in range(121)]
    assert not is_oversaturated(past + calm)
    worse = [Point(second, 900.0 - second, 90_000.0 - 100 * second) for second in range(300)]
    assert is_oversaturated(worse + [Point(301 + point.at_seconds, point.in_flight, point.ttft_ms) for point in past])


def test_the_knee_takes_a_larger_stride_for_several_doublings():
    assert knee_of([Step(1, 100, 10), Step(8, 200, 40), Step(16, 390, 41)]).concurrency == 8
    assert knee_of([Step(1, 100, 10), Step(8, 640, 12.5)]).concurrency == 1
    assert knee_of([Step(4, 100, 40)]) is None
    assert knee_of([Step(16, 390, 41), Step(8, 200, 40)]).concurrency == 8
    assert knee_of([Step(1, 100, 0.0), Step(2, 100, 20)]) is None


def test_figures_against_littles_law_are_named():
    assert disagreeing([Step(1, 100, 10), Step(4, 100, 20)]) == [4]
