"""Statistics of slots: right on any samples, and the same whether made from samples or from finer slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from monitoring.store.rollup import Stats, combine, empty, roll
from monitoring.store.rows import decode_cells, encode_cells
from monitoring.store.tables import FIVE_MINUTES, MINUTE

numbers = st.one_of(st.floats(0, 1e6, width=32), st.just(float("nan")))


@st.composite
def samples(draw, total=12):
    count = draw(st.integers(0, 60))
    slots = draw(npst.arrays(np.int64, count, elements=st.integers(0, total - 1)))
    return slots, draw(npst.arrays(np.float32, (count, 2), elements=numbers))


@given(samples())
def test_each_slot_has_its_own_average_maximum_minimum_and_count(drawn):
    slots, values = drawn
    stats = roll(slots, values, total=12)
    for slot in range(12):
        for metric in range(2):
            some = values[slots == slot, metric].astype(np.float64)
            some = some[~np.isnan(some)]
            assert stats.count[slot, metric] == len(some)
            if len(some):
                assert stats.average[slot, metric] == np.float32(some.sum() / len(some))
                assert stats.maximum[slot, metric] == some.max()
                assert stats.minimum[slot, metric] == some.min()


@given(samples())
def test_a_rollup_of_rollups_is_the_rollup_of_the_samples(drawn):
    slots, values = drawn
    fine = combine(roll(slots, values, total=12), 4)
    coarse = roll(slots // 4, values, total=3)
    assert np.array_equal(fine.count, coarse.count)
    assert np.array_equal(fine.maximum, coarse.maximum)
    assert np.array_equal(fine.minimum, coarse.minimum)
    assert np.allclose(fine.average, coarse.average, rtol=1e-6, atol=1e-6)


def test_averages_are_weighted_by_how_many_samples_stand_behind_them():
    values = np.array([[10.0], [10.0], [10.0], [50.0]], dtype=np.float32)
    stats = combine(roll(np.array([0, 0, 0, 1]), values, total=2), 2)
    assert stats.average[0, 0] == 20.0
    assert stats.maximum[0, 0] == 50.0
    assert stats.count[0, 0] == 4


def test_slots_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="do not divide"):
        combine(empty(5, 1), 2)


@given(samples(total=60), st.sampled_from([MINUTE, FIVE_MINUTES]))
def test_cells_come_back(drawn, level):
    slots = {MINUTE: 60, FIVE_MINUTES: 12}[level]
    stats = roll(drawn[0] % slots, drawn[1], total=slots)
    cells = encode_cells(stats, level)
    back = decode_cells(cells, level, slots)
    for metric in range(2):
        assert (cells[metric] is None) == (not stats.count[:, metric].any())
        for name in Stats.__dataclass_fields__:
            assert np.array_equal(back[name][metric], getattr(stats, name)[:, metric])
