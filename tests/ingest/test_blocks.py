"""Samples as columns and as rows say the same; columns that do not hold what the report says are refused."""

import struct

import msgspec
import numpy as np
import pytest

from fleet.agent import wire
from fleet.agent.packing import packed
from monitoring.ingest import body
from monitoring.ingest.blocks import gpu_block, host_block
from monitoring.ingest.refusals import Refused

FIELDS = body.SAMPLE_FIELDS


def sample(at, **readings):
    return wire.GpuSample(at, at + 7, **readings)


def report(*gpus, **fields):
    return wire.Report(wire.PROTOCOL, "b", 1, "1", wire.Driver("ok"), list(gpus), **fields)


def quick(sent):
    return body.decode_quick(msgspec.msgpack.encode(sent), "msgpack")


def columns(rows, width, number=1.0):
    return wire.Columns(rows, struct.pack(f"<{rows * width}d", *[number] * (rows * width)))


CARDS = (
    wire.Gpu("GPU-a", previous=sample(1, power_milliwatts=5), samples=[sample(2), sample(9, fan_percent=0)]),
    wire.Gpu("GPU-b", state="lost"),
    wire.Gpu("GPU-c", samples=[sample(4, dram_activity_percent=0.5)]),
)


def test_columns_and_rows_are_read_alike():
    host = {"host_samples": [wire.HostSample(3, 4, load_1m=0.5)], "host_previous": wire.HostSample(1, 2)}
    sent = report(*CARDS, **host)
    for block_of in (gpu_block, host_block):
        as_rows, as_columns = block_of(quick(sent)), block_of(quick(packed(sent)))
        assert np.array_equal(as_rows.readings, as_columns.readings, equal_nan=True)
        assert (as_rows.lengths, as_rows.has_previous) == (as_columns.lengths, as_columns.has_previous)
        assert as_rows.newest() == as_columns.newest()
    assert gpu_block(quick(packed(sent))).newest() == (9, 16)


def test_a_report_without_samples_has_no_blocks():
    for sent in (report(CARDS[1]), packed(report(CARDS[1]))):
        assert gpu_block(quick(sent)) is None
        assert host_block(quick(sent)) is None


def test_columns_of_a_newer_agent_are_left_out_and_those_an_older_one_lacks_are_nothing():
    newer = gpu_block(quick(report(wire.Gpu("GPU-a", rows=2), gpu_columns=columns(2, FIELDS + 3))))
    assert newer.readings.shape == (FIELDS, 2)
    older = gpu_block(quick(report(wire.Gpu("GPU-a", rows=2), gpu_columns=columns(2, 3))))
    assert older.readings.shape == (FIELDS, 2)
    assert np.isnan(older.readings[3:]).all()
    assert (older.readings[:3] == 1).all()


@pytest.mark.parametrize(
    "sent",
    [
        report(wire.Gpu("GPU-a", rows=1)),
        report(wire.Gpu("GPU-a", rows=1), gpu_columns=columns(2, FIELDS)),
        report(wire.Gpu("GPU-a"), gpu_columns=columns(2, FIELDS)),
        report(wire.Gpu("GPU-a", rows=2), gpu_columns=wire.Columns(2, bytes(2 * 8 * FIELDS + 8))),
        report(wire.Gpu("GPU-a", rows=2), gpu_columns=wire.Columns(2, b"")),
        report(wire.Gpu("GPU-a", rows=2), gpu_columns=columns(2, 1)),
        report(wire.Gpu("GPU-a", rows=2), gpu_columns=columns(2, FIELDS, float("nan"))),
        report(wire.Gpu("GPU-a", rows=2), gpu_columns=columns(2, FIELDS, -1.0)),
        report(wire.Gpu("GPU-a", rows=2), gpu_columns=columns(2, FIELDS, 1e15)),
        report(wire.Gpu("GPU-a", rows=2), gpu_columns=columns(2, FIELDS, float("inf"))),
        report(wire.Gpu("GPU-a", rows=2, samples=[sample(1)]), gpu_columns=columns(2, FIELDS)),
        report(wire.Gpu("GPU-a", rows=2, previous=sample(1)), gpu_columns=columns(2, FIELDS)),
    ],
)
def test_columns_that_do_not_hold_what_the_cards_say_are_refused(sent):
    with pytest.raises(Refused) as refused:
        gpu_block(quick(sent))
    assert (refused.value.status, refused.value.code) == (400, "invalid_report")


def test_a_host_in_both_forms_is_refused():
    both = report(host_samples=[wire.HostSample(1, 1)], host_columns=columns(1, body.HOST_FIELDS))
    with pytest.raises(Refused):
        host_block(quick(both))


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (report(wire.Gpu("GPU-a", rows=721), gpu_columns=columns(721, 2)), "over_limit"),
        (report(host_columns=columns(721, 2)), "over_limit"),
        (report(wire.Gpu("GPU-a", rows=-1)), "invalid_report"),
        (report(host_columns=wire.Columns(0, b"")), "invalid_report"),
        (report(host_columns=wire.Columns(2**40, b"")), "invalid_report"),
    ],
)
def test_columns_have_the_limits_of_rows(sent, code):
    with pytest.raises(Refused) as refused:
        quick(sent)
    assert (refused.value.status, refused.value.code) == (400, code)


def test_the_reading_before_does_not_count_against_the_limit():
    sent = report(wire.Gpu("GPU-a", rows=721, has_previous=True), gpu_columns=columns(721, 2))
    assert gpu_block(quick(sent)).lengths == [721]
