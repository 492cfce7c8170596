"""The rules of fixed numbers, recomputed with whole numbers alone."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring.fits import rate_upper_bound
from monitoring.golive.bounds import allowed_over, fixed_sizes, size_for

EXACT = {0.99: Fraction(1, 100), 0.95: Fraction(1, 20)}


def at_most(k, n, chance):
    """P(B <= k), exactly."""
    return sum(comb(n, i) * chance**i * (1 - chance) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize(
    ("q", "confidence", "table"),
    [
        (0.99, 0.99, [459, 662, 838, 1001, 1157, 1307]),
        (0.99, 0.95, [299, 473, 628, 773, 913, 1049]),
        (0.95, 0.99, [90, 130, 165]),
        (0.95, 0.95, [59, 93, 124, 153, 181, 208]),
    ],
)
def test_each_number_is_the_first_that_proves_it(q, confidence, table):
    assert fixed_sizes(q, len(table), confidence) == table
    risk = 1 - Fraction(str(confidence))
    for over, n in enumerate(table):
        assert at_most(over, n, EXACT[q]) <= risk < at_most(over, n - 1, EXACT[q])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 700), st.sampled_from([0.95, 0.99]))
def test_as_many_may_be_over_as_exact_arithmetic_allows(n, q):
    allowed = allowed_over(n, q)
    risk = Fraction(1, 100)
    if allowed is None:
        assert n == 0 or at_most(0, n, EXACT[q]) > risk
    else:
        assert at_most(allowed, n, EXACT[q]) <= risk < at_most(allowed + 1, n, EXACT[q])


def test_a_long_run_may_have_more_over():
    assert [allowed_over(n, 0.99) for n in (458, 459, 661, 662, 1307)] == [None, 0, 0, 1, 5]
    assert allowed_over(60_000, 0.99) > 500


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 600), st.data())
def test_the_upper_bound_of_a_rate_is_where_so_few_become_unlikely(n, data):
    count = data.draw(st.integers(0, min(n - 1, 12)))
    bound = rate_upper_bound(count, n)
    near = Fraction(bound).limit_denominator(10**6)
    assert float(at_most(count, n, near)) == pytest.approx(0.05, rel=5e-3)
    assert bound > count / n


def test_the_upper_bound_of_a_rate_at_its_ends():
    assert rate_upper_bound(0, 299) <= 0.01 < rate_upper_bound(0, 298)
    assert rate_upper_bound(1, 473) <= 0.01 < rate_upper_bound(1, 472)
    assert rate_upper_bound(0, 0) == rate_upper_bound(5, 5) == 1.0
    with pytest.raises(ValueError, match="no count"):
        rate_upper_bound(3, 2)


def test_the_next_number_is_one_that_such_a_service_passes_on_average():
    assert size_for(0.0, 0.99) == 459
    assert size_for(1 / 459, 0.99) == 838  # 1.8 of 838 are expected, and 2 may be over
    assert size_for(0.0099, 0.99) is None
    assert size_for(1.0, 0.95) is None
    with pytest.raises(ValueError, match="share"):
        size_for(1.5, 0.99)


def test_a_service_on_the_edge_passes_one_time_in_a_hundred_and_more_often_for_who_walks_up_the_list():
    """Why the number is fixed before the run."""
    draw = np.random.default_rng(5)
    sizes = fixed_sizes(0.99, 6)
    over = draw.random((10_000, sizes[-1])) < 0.01  # exactly 1 % of requests are over: it must not pass
    passes = np.stack([over[:, :n].sum(axis=1) <= allowed for allowed, n in enumerate(sizes)])
    assert passes.mean(axis=1).max() < 0.014
    assert passes.any(axis=0).mean() > 0.02
