"""Histograms: merging is exact whatever the order, and percentiles are right to 1.1 %."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent.gateway.traffic import bucket_of
from fleet.agent.orders import Histogram
from monitoring.histograms import RELATIVE_ERROR, LogHistogram, merged
from monitoring.percentiles import percentiles

VALUES = st.lists(st.one_of(st.just(0.0), st.floats(0.001, 1e8), st.just(math.inf)), max_size=200)


@given(VALUES, VALUES, VALUES)
def test_merging_is_associative_and_commutative_and_loses_nothing(a, b, c):
    first, second, third = LogHistogram.of(a), LogHistogram.of(b), LogHistogram.of(c)
    assert (first + second) + third == first + (second + third)
    assert first + second == second + first
    assert merged([first, second, third]) == LogHistogram.of(a + b + c)


@given(VALUES.filter(bool), st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]), st.integers(1, 7))
def test_a_percentile_of_merged_parts_is_off_by_the_bound_at_most(values, q, parts):
    whole = merged(LogHistogram.of(values[part::parts]) for part in range(parts))
    exact = percentiles(values, [q])[0].value_ms
    found = whole.quantile_ms(q)
    assert RELATIVE_ERROR <= 0.011
    if math.isinf(exact) or exact == 0:
        assert found == exact
    else:
        assert abs(found - exact) <= exact * (RELATIVE_ERROR + 1e-9)


@given(VALUES)
def test_what_is_stored_comes_back(values):
    one = LogHistogram.of(values)
    assert LogHistogram.from_json(json.loads(json.dumps(one.as_json()))) == one
    assert one.count == len(values)


def test_a_percentile_of_two_replicas_is_that_of_all_requests_and_no_average():
    busy, idle = LogHistogram.of([100.0] * 1000), LogHistogram.of([1000.0] * 9)
    found = (busy + idle).quantile_ms(0.99)
    average = (busy.quantile_ms(0.99) + idle.quantile_ms(0.99)) / 2
    assert math.isclose(found, 100, rel_tol=RELATIVE_ERROR)
    assert average > 500


def test_a_gateways_histogram_comes_in_as_it_was_told():
    told = Histogram(count=3, sum_ms=130.5, buckets={bucket_of(10.0): 2, bucket_of(110.5): 1})
    one = LogHistogram.of_gateway(told)
    assert (one.count, one.over, one.mean_ms) == (3, 0, 43.5)
    assert math.isclose(one.quantile_ms(0.99), 110.5, rel_tol=RELATIVE_ERROR)


def test_without_durations_there_is_neither_percentile_nor_mean():
    assert LogHistogram().quantile_ms(0.99) is None
    assert LogHistogram().mean_ms is None
    assert LogHistogram.of([math.inf]).mean_ms is None


def test_failures_lie_over_every_threshold():
    one = LogHistogram.of([0.0, 5.0, 50.0, math.inf])
    assert [one.count_over(threshold) for threshold in (0.0, 10.0, 1e9)] == [3, 2, 1]


@pytest.mark.parametrize("value", [math.nan, -1.0])
def test_what_is_no_duration_is_refused(value):
    with pytest.raises(ValueError, match="no duration"):
        LogHistogram.of([value])
