"""Whatever is sealed comes back exactly, and takes little space."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from monitoring.store import codec
from monitoring.store.codec import Block

singles = st.one_of(
    st.floats(width=32, allow_nan=True, allow_infinity=False),
    st.integers(0, 100).map(float),
    st.integers(0, 700_000).map(lambda milliwatts: float(np.float32(milliwatts / 1000))),
    st.just(float("nan")),
)
columns = npst.arrays(np.float32, st.integers(0, 80), elements=singles)
ordered_times = st.lists(st.integers(0, 20_000), min_size=0, max_size=60).map(
    lambda steps: 1_700_000_000_000 + np.cumsum(np.array(steps, dtype=np.int64))
)


def same(first, second):
    return np.array_equal(
        first.view(np.uint32) if first.dtype == np.float32 else first,
        second.view(np.uint32) if second.dtype == np.float32 else second,
    )


@given(columns)
def test_a_column_comes_back_bit_for_bit(values):
    back = codec.decode_column(codec.encode_column(values), len(values))
    assert np.array_equal(np.isnan(back), np.isnan(values))
    assert same(back[~np.isnan(back)], values[~np.isnan(values)])


@given(ordered_times)
def test_times_come_back_on_and_off_the_grid(at_ms):
    assert np.array_equal(codec.decode_times(codec.encode_times(at_ms)), at_ms)


@given(ordered_times, st.data())
def test_a_block_comes_back(at_ms, data):
    values = data.draw(npst.arrays(np.float32, (len(at_ms), 3), elements=singles))
    reasons = data.draw(npst.arrays(np.int32, len(at_ms), elements=st.integers(-1, 2**31 - 1)))
    back = codec.decode_block(codec.encode_block(Block(at_ms, values, reasons)), metrics=3)
    assert np.array_equal(back.at_ms, at_ms)
    assert np.array_equal(back.values, values, equal_nan=True)
    assert np.array_equal(back.reasons, reasons)


def test_a_metric_added_later_reads_as_missing_in_old_blocks():
    old = Block(np.array([1000], dtype=np.int64), np.array([[5.0]], dtype=np.float32), np.array([-1], dtype=np.int32))
    back = codec.decode_block(codec.encode_block(old), metrics=2)
    assert back.values[0, 0] == 5.0
    assert np.isnan(back.values[0, 1])


@given(ordered_times, ordered_times)
def test_merged_blocks_are_in_order_without_twins_and_the_new_wins(first, second):
    def block(at_ms, value):
        return Block(at_ms, np.full((len(at_ms), 1), value, dtype=np.float32), np.zeros(len(at_ms), dtype=np.int32))

    merged = codec.merge_blocks(block(first, 1.0), block(second, 2.0))
    assert merged.at_ms.tolist() == sorted(set(first.tolist()) | set(second.tolist()))
    assert set(merged.at_ms[merged.values[:, 0] == 2.0].tolist()) == set(second.tolist())


def test_an_hour_of_steady_readings_is_nearly_nothing():
    at_ms = 1_700_000_000_000 + np.arange(720, dtype=np.int64) * 5000
    values = np.tile(np.array([[0, 61, 1980, 70.125]], dtype=np.float32), (720, 1))
    size = len(codec.encode_block(Block(at_ms, values, np.zeros(720, dtype=np.int32))))
    assert size < 120


def test_jitter_of_the_times_costs_less_than_a_byte_a_sample():
    random = np.random.default_rng(3)
    at_ms = 1_700_000_000_000 + np.arange(720, dtype=np.int64) * 5000 + random.integers(-4, 5, 720)
    assert len(codec.compress(codec.encode_times(at_ms))) < 720
