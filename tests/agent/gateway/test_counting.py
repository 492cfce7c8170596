"""From the log's lines to counts, without a data plane: outcomes by flags, spans in the log's order, places to read on from."""

import math
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent.gateway.accesslog import AccessLog, Cursor
from fleet.agent.gateway.dataplane import Reading
from fleet.agent.gateway.shipper import Shipper
from fleet.agent.gateway.traffic import Line, bucket_of, span_of, status_of, traffic_of
from fleet.agent.orders import TrafficReport


@pytest.mark.parametrize(
    ("code", "flags", "outcome"),
    [
        (200, "-", "2xx"),
        (200, "UPE", "cut"),
        (200, "UT", "cut"),
        (200, "DC", "left"),
        (0, "DC", "left"),
        (503, "UF,URX", "5xx"),
        (504, "UT", "5xx"),
        (429, "UO", "4xx"),
        (0, "UPE", "cut"),
    ],
)
def test_an_outcome_is_judged_by_the_flags(code, flags, outcome):
    assert status_of(code, frozenset(flags.split(","))) == outcome


@given(st.floats(min_value=0.001, max_value=1e9))
def test_a_duration_lies_within_its_bucket(ms):
    bucket = bucket_of(ms)
    assert 2 ** (bucket / 32) <= ms * (1 + 1e-12)
    assert ms < 2 ** ((bucket + 1) / 32) * (1 + 1e-12)
    middle = math.sqrt(2 ** (bucket / 32) * 2 ** ((bucket + 1) / 32))
    assert abs(middle / ms - 1) < 0.011


def test_first_byte_is_the_bodys_where_the_log_has_it_and_the_headers_otherwise():
    lines = [Line("1000", 200, e="a", b=4_000, b2=1_000, d=9), Line("1000", 401, e="a", b2=2_000, d=2)]
    (told,) = traffic_of(lines, {})
    assert told.first_byte.sum_ms == 6.0
    assert told.in_flight is None


def test_probes_of_the_panel_are_counted_apart_and_only_their_key_pays_for_them():
    asked = {"e": "a", "q": 1_000, "b": 4_000, "d": 9, "k": "41", "i": 40, "o": 100}
    lines = [Line("1000", 200, n=30, **asked), Line("1000", 503, n=7, p="1", **asked), Line("1000", 429, p="1", e="a")]
    (told,) = traffic_of(lines, {})
    assert (told.requests, told.statuses, told.probes) == (1, {"2xx": 1}, 2)
    assert (told.queue.count, told.first_byte.count, told.total.count, told.bytes_out) == (1, 1, 1, 100)
    assert (told.requests_by_key, told.tokens_by_key, told.probe_tokens) == ({"41": 2}, {"41": 37}, 7)


class Box:
    """A panel and a data plane for a shipper."""

    name = "fake"

    def __init__(self):
        self.reports = []
        self.reading = Reading("serving", 5)

    def traffic(self, body):
        self.reports.append(msgspec.msgpack.decode(body, type=TrafficReport))

    def in_flight(self):
        return {}

    def reopen_log(self):
        pass


def shipper_of(folder, box):
    return Shipper(folder, folder / "access.log", box, box, lambda: box.reading)


def write(folder, *ended_ms, name="a"):
    with (folder / "access.log").open("ab") as log:
        for at in ended_ms:
            log.write(msgspec.json.encode({"t": str(at - 5), "d": 5, "c": 200, "e": name, "f": "-"}) + b"\n")


START = 1_800_000_000_000


def told(box):
    return {(report.from_ms - START, one.requests) for report in box.reports for one in report.endpoints}


def test_lines_come_in_spans_and_those_of_a_span_that_goes_on_wait(tmp_path):
    box = Box()
    write(tmp_path, START + 100, START + 9_900, START + 10_050, START + 9_990, START + 20_001, START + 30_100)
    shipper = shipper_of(tmp_path, box)
    shipper.turn(START + 31_600)
    # a line that comes a little late counts in the span that the log has reached
    assert told(box) == {(0, 2), (10_000, 2), (20_000, 1)}
    write(tmp_path, START + 31_000)
    shipper.turn(START + 41_600)
    assert told(box) == {(0, 2), (10_000, 2), (20_000, 1), (30_000, 2)}
    assert [report.seq for report in box.reports] == sorted(report.seq for report in box.reports)
    assert {report.applied_version for report in box.reports} == {5}


def test_a_span_is_told_of_once_with_what_is_under_way_even_if_a_line_comes_late(tmp_path):
    box = Box()
    box.in_flight = lambda: {"a": 3, "b": 1}
    write(tmp_path, START + 100, START + 12_000)
    shipper_of(tmp_path, box).turn(START + 11_600)
    write(tmp_path, START + 9_000)  # after its span was told of, by a run of the agent that ended
    shipper = shipper_of(tmp_path, box)
    shipper.turn(START + 21_600)
    shipper.turn(START + 31_600)
    spans = [(report.from_ms - START, one.endpoint) for report in box.reports for one in report.endpoints]
    assert len(set(spans)) == len(spans)
    assert sum(one.requests for report in box.reports for one in report.endpoints) == 3
    assert {one.in_flight for report in box.reports for one in report.endpoints if one.endpoint == "a"} == {3}


def test_a_kill_between_any_two_steps_neither_loses_a_line_nor_tells_it_twice(tmp_path):
    box = Box()
    write(tmp_path, *(START + at for at in range(100, 60_000, 500)))
    now = START + 65_000
    for steps in range(1, 8):
        shipper = shipper_of(tmp_path, box)
        left = [steps]
        append = shipper._spool.append

        def dying(*arguments, append=append, left=left):
            if left[0] == 0:
                raise KeyboardInterrupt  # the kill
            left[0] -= 1
            append(*arguments)

        shipper._spool.append = dying
        with suppress(KeyboardInterrupt):
            shipper.cut(now)
    shipper = shipper_of(tmp_path, box)
    shipper.cut(now)
    shipper._send()
    spans = [(report.from_ms - START, one.requests) for report in box.reports for one in report.endpoints]
    assert sorted(spans) == [(span, 20) for span in range(0, 60_000, 10_000)]


def test_a_line_that_is_still_being_written_is_left_for_the_next_time(tmp_path):
    box = Box()
    write(tmp_path, START + 100)
    with (tmp_path / "access.log").open("ab") as log:
        log.write(b'{"t":"18000')
    shipper = shipper_of(tmp_path, box)
    shipper.turn(START + 21_600)
    assert told(box) == {(0, 1)}
    with (tmp_path / "access.log").open("ab") as log:
        log.write(b'00000200","d":1,"c":200,"e":"a"}\nnonsense\n')
    shipper.turn(START + 31_600)
    assert sum(one.requests for report in box.reports for one in report.endpoints) == 2


def test_a_cursor_into_a_file_that_is_gone_begins_anew(tmp_path):
    log = AccessLog(tmp_path / "access.log")
    log.start_at(Cursor(1, 10_000))
    write(tmp_path, START)
    assert len(list(log.lines())) == 1


def test_a_span_begins_at_a_multiple_of_ten_seconds():
    assert span_of(START + 12_345) == START + 10_000
