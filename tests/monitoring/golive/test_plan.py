"""What a run will do is fixed before it begins."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from monitoring.golive.plan import MOST_REQUESTS, Promise, plan_run

PROMISE = Promise({0.95: 500.0, 0.99: 1000.0})


def plan(rate=2.0, **given):
    return plan_run(PROMISE, **({"peak_per_second": rate, "lengths": (200, 2000, 6000), "seed": 1} | given))


def test_a_run_has_as_many_requests_as_its_strictest_promise_needs_and_lasts_ten_minutes():
    slow = plan(0.5)
    assert slow.n == 459
    assert dict(slow.allowed) == {0.95: 12, 0.99: 0}
    assert slow.seconds > 600
    fast = plan(5.0)
    assert fast.n == pytest.approx(3000, abs=200)
    assert fast.seconds - fast.arrivals[-fast.n - 1].at_seconds >= 595
    assert fast.allowed[0.99] > 10


def test_more_may_be_over_when_that_was_asked_for_before():
    run = plan(0.5, spare=2)
    assert (run.n, run.allowed[0.99]) == (838, 2)


def test_the_warm_up_is_long_enough_and_comes_first():
    for rate in (0.05, 0.5, 20.0):
        run = plan_run(Promise({0.95: 500.0}), peak_per_second=rate, lengths=(1, 2, 3), seed=3, seconds=60)
        warm = [arrival for arrival in run.arrivals if arrival.is_warm_up]
        assert len(warm) >= 5
        assert len(warm) + run.n == len(run.arrivals)
        assert run.measured[0].at_seconds > 30
        assert [arrival.number for arrival in run.arrivals] == list(range(len(run.arrivals)))
        assert not any(arrival.is_warm_up for arrival in run.measured)


def test_arrivals_are_poisson():
    """Gaps have the mean and the spread of an exponential distribution, and counts per second that of Poisson's."""
    run = plan(20.0)
    moments = np.array([arrival.at_seconds for arrival in run.measured])
    gaps = np.array([after - before for before, after in pairwise(moments)])
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(1 / 20, rel=0.05)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)
    assert (gaps > 1 / 20).mean() == pytest.approx(np.exp(-1), abs=0.02)
    counts = np.histogram(moments, bins=np.arange(moments[0], moments[-1], 1.0))[0]
    assert counts.var() == pytest.approx(counts.mean(), rel=0.25)


def test_the_seed_decides_and_nothing_else():
    assert plan(seed=7) == plan(seed=7)
    assert plan(seed=7).arrivals != plan(seed=8).arrivals


def test_prompts_have_three_lengths_rounded_up():
    lengths = Counter(arrival.tokens for arrival in plan(20.0).measured)
    n = lengths.total()
    assert lengths[200] / n == pytest.approx(0.5, abs=0.03)
    assert lengths[2000] / n == pytest.approx(0.45, abs=0.03)
    assert lengths[6000] / n == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": 1000.0}, f"more than {MOST_REQUESTS}"),
        ({"rate": 0.001}, "more than six hours"),
        ({"lengths": (100, 50, 200)}, "lengths"),
        ({"lengths": (0, 50, 200)}, "lengths"),
        ({"spare": -1}, "spare"),
        ({"seconds": 0}, "six hours"),
    ],
)
def test_a_run_that_cannot_be_is_refused_with_the_cause(given, cause):
    with pytest.raises(ValueError, match=cause):
        plan(**given)


@pytest.mark.parametrize("given", [{}, {0.99: 0.0}, {0.4: 10.0}, {0.9999: 10.0}])
def test_a_promise_that_cannot_be_proven_is_refused(given):
    with pytest.raises(ValueError, match="thresholds_ms"):
        Promise(given)
    with pytest.raises(ValueError, match="error_rate"):
        Promise({0.95: 1.0}, error_rate=0)
