"""Lines and their intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.fits import line_through, t_quantile


@pytest.mark.parametrize(
    ("p", "degrees", "table"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.975, 5, 2.571),
        (0.975, 10, 2.228),
        (0.975, 30, 2.042),
        (0.975, 120, 1.980),
        (0.95, 4, 2.132),
        (0.99, 8, 2.896),
    ],
)
def test_quantiles_of_t_are_those_of_the_printed_tables(p, degrees, table):
    assert t_quantile(p, degrees) == pytest.approx(table, rel=0.01)
    assert t_quantile(1 - p, degrees) == pytest.approx(-table, rel=0.01)


def test_a_quantile_needs_a_chance_and_a_degree():
    for p, degrees in ((0.0, 5), (1.0, 5), (0.5, 0)):
        with pytest.raises(ValueError, match="quantile"):
            t_quantile(p, degrees)


@given(
    st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.lists(st.integers(0, 10_000), min_size=4, max_size=40, unique=True)
)
def test_points_on_a_line_give_that_line(intercept, slope, x):
    found = line_through(x, [intercept + slope * each for each in x])
    assert found.slope == pytest.approx(slope, rel=1e-6, abs=1e-6)
    assert found.intercept == pytest.approx(intercept, rel=1e-6, abs=1e-3)
    assert found.low <= found.slope <= found.high


def test_the_interval_holds_the_true_slope_as_often_as_it_says():
    draw = np.random.default_rng(3)
    x = np.repeat([1.0, 2.0, 4.0, 8.0], 3)
    held = 0
    for _ in range(600):
        found = line_through(x, 5 + 2 * x + draw.normal(0, 1.5, len(x)))
        held += found.low <= 2 <= found.high
    assert 0.925 <= held / 600 <= 0.975


def test_weights_let_what_is_exact_decide():
    x = [1.0, 2.0, 3.0, 4.0, 5.0]
    found = line_through(x, [1.0, 2.0, 3.0, 4.0, 50.0], [1, 1, 1, 1, 1e-9])
    assert found.slope == pytest.approx(1.0, rel=1e-4)


def test_what_is_no_line_is_none_or_refused():
    assert line_through([1, 2, 3], [1, 2, 3]) is None
    assert line_through([5, 5, 5, 5], [1, 2, 3, 4]) is None
    assert line_through([], []) is None
    for y, weights in (([1, 2, 3, np.nan], None), ([1, 2, 3, 4], [1, 1, 1, 0])):
        with pytest.raises(ValueError, match="finite"):
            line_through([1, 2, 3, 4], y, weights)


def test_flat_points_have_no_rise():
    found = line_through([1, 2, 3, 4], [7.0] * 4)
    assert (found.is_rising, found.slope, found.r_squared) == (False, 0.0, 1.0)
