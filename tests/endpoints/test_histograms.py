"""Histograms of gateways are added by bucket and read by rank; too few samples give no quantile."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoints.histograms import Histogram, has_enough, mean, merged, quantile

WIDTH = 2 ** (1 / 32)


def of(times):
    """A histogram as a gateway tells it."""
    buckets = {}
    for each in times:
        key = str(math.floor(math.log2(each) * 32))
        buckets[key] = buckets.get(key, 0) + 1
    return {"count": len(times), "sum_ms": sum(times), "buckets": buckets}


def test_the_p99_of_two_gateways_is_that_of_all_requests_and_not_the_mean_of_theirs():
    quick, slow = [100.0] * 1000, [900.0] * 100
    both = merged([of(quick), of(slow)])
    assert quantile(both, 0.99) == pytest.approx(900, rel=0.022)
    assert quantile(both, 0.5) == pytest.approx(100, rel=0.022)
    averaged = (quantile(merged([of(quick)]), 0.99) + quantile(merged([of(slow)]), 0.99)) / 2
    assert averaged == pytest.approx(500, rel=0.03)


@given(
    st.lists(st.floats(min_value=0.01, max_value=1e6), min_size=1, max_size=300), st.floats(min_value=0.01, max_value=1)
)
def test_a_quantile_lies_in_the_bucket_of_the_sample_of_that_rank(times, share):
    exact = sorted(times)[max(math.ceil(share * len(times)), 1) - 1]
    read = quantile(merged([of(times)]), share)
    assert exact / WIDTH / 1.0001 <= read <= exact * WIDTH * 1.0001


@given(st.lists(st.lists(st.floats(min_value=0.01, max_value=1e6), max_size=40), max_size=8))
def test_merging_is_the_histogram_of_all_samples_together(groups):
    together = [each for group in groups for each in group]
    assert merged(of(group) for group in groups).buckets == {
        int(key): number for key, number in of(together)["buckets"].items()
    }


def test_nothing_measured_has_no_quantile_and_no_mean():
    nothing = merged([{}, {"count": 0, "sum_ms": 0.0, "buckets": {}}])
    assert quantile(nothing, 0.99) is None
    assert mean(nothing) is None
    assert not has_enough(nothing, 0.5)


@pytest.mark.parametrize(("share", "needed"), [(0.5, 1), (0.95, 59), (0.99, 299)])
def test_a_quantile_needs_so_many_samples(share, needed):
    assert not has_enough(Histogram(0, 0, {0: needed - 1}), share)
    assert has_enough(Histogram(0, 0, {0: needed}), share)


@pytest.mark.parametrize(("share", "needed"), [(0.95, 59), (0.99, 299)])
def test_those_numbers_are_where_the_largest_sample_lies_above_the_quantile_with_95_percent_confidence(share, needed):
    assert 1 - share**needed >= 0.95 > 1 - share ** (needed - 1)


def test_a_quantile_of_many_random_times_is_off_by_the_width_of_a_bucket_at_most():
    dice = random.Random(7)
    times = [dice.lognormvariate(5, 1) for _ in range(20_000)]
    for share in (0.5, 0.95, 0.99):
        exact = sorted(times)[math.ceil(share * len(times)) - 1]
        assert quantile(merged([of(times)]), share) == pytest.approx(exact, rel=0.022)
