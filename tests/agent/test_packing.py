"""Samples as columns: what was read is what arrives, in the same order, and nothing is not zero."""

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent import wire
from fleet.agent.packing import columns, packed
from tests.reports import decode_report

READING = (
    st.none() | st.integers(0, 2**53) | st.floats(0, 100).map(lambda value: int(value) if value.is_integer() else value)
)
GPU_SAMPLE = st.lists(READING, min_size=len(wire.GpuSample.__struct_fields__) - 2).map(
    lambda readings: wire.GpuSample(1, 2, *readings[: len(wire.GpuSample.__struct_fields__) - 2])
)
HOST_SAMPLE = st.builds(wire.HostSample, st.integers(0, 2**41), st.integers(0, 2**41), READING, READING)
GPUS = st.lists(st.tuples(st.lists(GPU_SAMPLE, max_size=3), st.none() | GPU_SAMPLE), max_size=3).map(
    lambda cards: [
        wire.Gpu(f"GPU-{i}", samples=samples, previous=previous) for i, (samples, previous) in enumerate(cards)
    ]
)


@given(gpus=GPUS, host=st.lists(HOST_SAMPLE, max_size=3), host_previous=st.none() | HOST_SAMPLE)
def test_a_report_comes_back_as_it_was(gpus, host, host_previous):
    report = wire.Report(wire.PROTOCOL, "b", 1, "1", wire.Driver("ok"), gpus, host, host_previous)
    assert decode_report(msgspec.msgpack.encode(packed(report))) == report


def test_no_samples_are_no_columns():
    report = packed(wire.Report(wire.PROTOCOL, "b", 1, "1", wire.Driver("ok"), [wire.Gpu("GPU-a")]))
    assert report.gpu_columns is report.host_columns is None
    assert report.gpus == [wire.Gpu("GPU-a")]


def test_a_reading_that_is_missing_is_not_a_number():
    packed_rows = columns([wire.HostSample(1, 2, cpu_percent=None, load_1m=0.0)])
    reading = dict(zip(wire.HostSample.__struct_fields__, memoryview(packed_rows.data).cast("d"), strict=True))
    assert math.isnan(reading["cpu_percent"])
    assert reading["load_1m"] == 0.0
