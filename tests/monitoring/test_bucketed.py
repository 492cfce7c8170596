"""Histograms of engines: merged by adding, read between edges, and never as if a bucket's edge were a measurement."""

import json
import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from monitoring.engines.histograms import Bucketed, merged
from tests.endpoints.engines.samples import sample

BOUNDS = (0.1, 1.0, 10.0)


def of(cumulative):
    """A histogram from `{le: requests up to it}`."""
    bounds = [float(le) for le in cumulative if le != "+Inf"]
    counts = list(cumulative.values())
    return Bucketed.of(bounds, [high - low for low, high in zip([0, *counts], counts, strict=False)], None)


def case(name):
    (found,) = [each for each in json.loads(sample("histogram_cases.json"))["cases"] if each["id"] == name]
    return of(found["buckets"])


def test_a_percentile_lies_between_the_edges_of_its_bucket():
    found = case("kubeai_ttft").estimate(0.99)
    assert found.value_ms == pytest.approx(79.4, abs=0.05)
    assert (found.n, found.low_ms, found.high_ms, found.is_enough) == (9, 60, 80, False)


def test_six_requests_in_a_wide_bucket_say_at_most_its_edge():
    found = case("kubeai_e2e").estimate(0.99)
    assert (found.n, found.low_ms, found.high_ms, found.is_enough) == (6, 15_000, 20_000, False)


def test_above_all_bounds_there_is_no_number_but_more_than_the_last():
    found = case("all_in_inf").estimate(0.99)
    assert (found.value_ms, found.low_ms, found.high_ms, found.is_over_range) == (None, 60_000, None, True)
    assert case("all_in_inf").share_over(60_000) == (1.0, 1.0)
    assert case("all_in_inf").share_over(90_000) == (0.0, 1.0)


def test_without_requests_there_is_neither_a_percentile_nor_a_share_nor_a_mean():
    nothing = case("no_traffic")
    assert (nothing.estimate(0.99).value_ms, nothing.share_over(1), nothing.mean_ms) == (None, None, None)


def test_the_percentile_of_two_replicas_is_that_of_all_requests_and_no_average():
    told = json.loads(sample("histogram_cases.json"))["merge"]
    both = of(told["replica_a"]).merged(of(told["replica_b"]))
    assert both.estimate(0.99).value_ms == pytest.approx(told["p99_merged"] * 1000)


def test_a_threshold_between_two_bounds_gives_two_shares():
    whole = Bucketed.of(BOUNDS, (50, 30, 15, 5), None)
    assert whole.share_over(1000) == (0.2, 0.2)
    assert whole.share_over(3000) == (0.05, 0.2)


def test_requests_whose_buckets_did_not_add_up_are_counted_and_in_no_percentile():
    whole = Bucketed.of(BOUNDS, (1, 0, 0, 0), 0.05).merged(Bucketed.of((), (7,), 3.95))
    assert (whole.n, whole.unplaced, whole.mean_ms) == (1, 7, 500)
    assert whole.estimate(0.5).n == 1


def test_after_an_upgrade_with_other_buckets_the_common_ones_stay():
    both = Bucketed.of((0.1, 1.0), (1, 2, 3), None).merged(Bucketed.of((0.1, 0.5, 1.0, 5.0), (1, 1, 1, 1, 1), None))
    assert (both.bounds, both.counts) == ((0.1, 1.0), (2, 4, 5))


_COUNTS = st.lists(st.integers(0, 1_000), min_size=4, max_size=4).filter(any)


@given(_COUNTS, _COUNTS, _COUNTS)
def test_merging_is_associative_and_commutative_and_loses_nothing(a, b, c):
    x, y, z = (Bucketed.of(BOUNDS, counts, float(sum(counts))) for counts in (a, b, c))
    assert x.merged(y).merged(z) == x.merged(y.merged(z)) == merged([z, y, x])
    assert merged([x, y, z]).n == sum(a) + sum(b) + sum(c)


@given(st.lists(st.floats(0.001, 20.0), min_size=1, max_size=300), st.sampled_from([0.5, 0.95, 0.99]))
def test_the_true_percentile_lies_within_the_edges(seconds, q):
    counts = [0] * 4
    for value in seconds:
        counts[next((place for place, bound in enumerate(BOUNDS) if value <= bound), 3)] += 1
    found = Bucketed.of(BOUNDS, counts, None).estimate(q)
    true = sorted(seconds)[max(math.ceil(q * len(seconds)), 1) - 1] * 1000
    assert found.low_ms <= true * (1 + 1e-12)
    assert found.high_ms is None or true <= found.high_ms * (1 + 1e-12)
