"""Percentiles against Postgres' own, and the tables of what so many values can prove."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.percentiles import (
    ascending,
    binomial,
    breaches_needed,
    count_over,
    fewest,
    needed_to_pass,
    percentiles,
    rank_interval,
    share_over,
)

DURATIONS = st.lists(st.one_of(st.floats(0, 1e6), st.just(math.inf)), min_size=1, max_size=400)


@given(DURATIONS, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_percentile_is_a_value_that_was_measured_with_the_wanted_share_up_to_it(values, q):
    found = percentiles(values, [q])[0].value_ms
    assert found in values
    assert sum(value <= found for value in values) >= q * len(values) - 1e-9
    assert sum(value < found for value in values) < q * len(values) + 1e-9


@pytest.mark.django_db
def test_percentiles_are_those_of_postgres():
    from django.db import connection

    generator = np.random.default_rng(7)
    for n in [1, 2, 3, 19, 20, 21, 59, 60, 99, 100, 101, 299, 300, 1000]:
        values = generator.lognormal(5, 1, n)
        values[generator.random(n) < 0.03] = math.inf
        with connection.cursor() as cursor:
            sql = "SELECT percentile_disc(%s::float8[]) WITHIN GROUP (ORDER BY v) FROM unnest(%s::float8[]) v"
            cursor.execute(sql, [[0.07, 0.5, 0.95, 0.99], values.tolist()])
            expected = cursor.fetchone()[0]
        assert [found.value_ms for found in percentiles(values, [0.07, 0.5, 0.95, 0.99])] == expected


def test_failures_are_over_every_threshold():
    p50, p95, p99 = percentiles([10.0] * 97 + [math.inf] * 3)
    assert (p50.value_ms, p95.value_ms, p99.value_ms) == (10.0, 10.0, math.inf)
    assert share_over([10.0] * 97 + [math.inf] * 3, 1e12) == 0.03
    assert count_over(ascending([10.0, 10.0, 20.0, math.inf]), 10.0) == 2


def test_without_values_there_is_no_percentile_and_no_share():
    (found,) = percentiles([], [0.99])
    assert (found.n, found.value_ms, found.is_enough, found.low_ms, found.high_ms) == (0, None, False, None, None)
    assert share_over([], 1.0) is None


@pytest.mark.parametrize("values", [[1.0, math.nan], [-0.1]])
def test_what_is_no_duration_is_refused(values):
    with pytest.raises(ValueError, match="inf"):
        percentiles(values)


@pytest.mark.parametrize("q", [0.0, 1.0, 95])
def test_what_is_no_percentile_is_refused(q):
    with pytest.raises(ValueError, match="between 0 and 1"):
        percentiles([1.0], [q])


@pytest.mark.parametrize(
    ("q", "confidence", "n"),
    [
        (0.5, 0.95, 6), (0.9, 0.95, 29), (0.9, 0.99, 44), (0.95, 0.95, 59), (0.95, 0.99, 90), (0.99, 0.95, 299),
        (0.99, 0.99, 459), (0.999, 0.95, 2995), (0.999, 0.99, 4603),
    ],
)  # fmt: skip
def test_so_many_values_are_needed_for_a_percentile(q, confidence, n):
    assert fewest(q, confidence) == n


def test_with_too_few_values_only_a_bound_from_below_is_known():
    values = [float(value) for value in range(1, 119)]
    _, p95, p99 = percentiles(values)
    assert p95.is_enough
    assert not p99.is_enough
    low = rank_interval(0.99, 118)[0]
    assert (p99.low_ms, p99.high_ms) == (values[low - 1], None)


def test_with_very_few_values_not_even_that_bound_is_known():
    assert percentiles([5.0], [0.5])[0].low_ms is None


@pytest.mark.parametrize(
    ("q", "n", "ranks"),
    [
        (0.95, 60, (53, None)), (0.95, 100, (90, 100)), (0.95, 300, (277, 293)), (0.99, 100, (97, None)),
        (0.99, 300, (293, None)), (0.99, 368, (360, 368)), (0.99, 1000, (983, 997)), (0.99, 2880, (2840, 2862)),
    ],
)  # fmt: skip
def test_the_true_percentile_lies_between_these_ranks(q, n, ranks):
    assert rank_interval(q, n) == ranks


def test_rank_intervals_hold_the_true_percentile_as_often_as_they_say():
    generator = np.random.default_rng(11)
    low, high = rank_interval(0.95, 300)
    samples = np.sort(generator.exponential(1, (4000, 300)), axis=1)
    truth = -math.log(0.05)
    held = np.mean((samples[:, low - 1] <= truth) & (truth <= samples[:, high - 1]))
    assert held > 0.945


@pytest.mark.parametrize(
    ("n", "q", "one_in_a_hundred", "one_in_a_thousand"),
    [
        (30, 0.99, 3, 4), (60, 0.99, 4, 5), (120, 0.99, 5, 7), (240, 0.99, 8, 9), (360, 0.99, 10, 12), (720, 0.99, 15, 18),
        (1440, 0.99, 25, 28), (30, 0.95, 6, None), (60, 0.95, 8, None), (120, 0.95, 13, None), (360, 0.95, 29, None),
        (720, 0.95, 51, None),
    ],
)  # fmt: skip
def test_so_many_breaches_reject_the_objective(n, q, one_in_a_hundred, one_in_a_thousand):
    assert breaches_needed(n, q=q, alpha=0.01) == one_in_a_hundred
    if one_in_a_thousand is not None:
        assert breaches_needed(n, q=q, alpha=0.001) == one_in_a_thousand


@pytest.mark.parametrize(
    ("q", "confidence", "numbers"),
    [
        (0.99, 0.99, [459, 662, 838, 1001, 1157, 1307]),
        (0.99, 0.95, [299, 473, 628, 773, 913, 1049]),
        (0.95, 0.95, [59, 93, 124, 153, 181, 208]),
    ],
)
def test_so_many_requests_prove_an_objective_with_some_over_it(q, confidence, numbers):
    assert [needed_to_pass(over, q=q, confidence=confidence) for over in range(6)] == numbers


@given(st.integers(1, 3000), st.sampled_from([0.01, 0.05, 0.5]))
def test_probabilities_of_all_counts_add_up_to_one(n, chance):
    assert math.isclose(math.fsum(binomial(k, n, chance) for k in range(n + 1)), 1.0, rel_tol=1e-9)
