"""Logs of engines: whole lines in order, within bounds, across rotation, and never a secret."""

import pytest

from fleet.agent.engines import keeper, logs
from fleet.agent.engines.container_logs import Place, lines_after
from fleet.agent.engines.logs import LogReader, last_line
from fleet.agent.engines.redaction import MASK, Redactor
from fleet.agent.orders import ReadyCheck, ReplicaOrder


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(logs.time, "monotonic", lambda: self.now)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "1.log"


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def reader(log, clock):
    return LogReader(log, 7, 1, lambda text: text)


def read_all(reader, clock, **options):
    """Return all chunks that may be read now, each acknowledged."""
    chunks = []
    while (chunk := reader.next(clock.now, **options)) is not None:
        reader.taken(chunk, reader.size)
        chunks.append(chunk)
    return chunks


def add(log, text):
    with log.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_lines_come_whole_and_once_and_the_last_one_when_the_engine_has_ended(log, clock, reader):
    add(log, "loading\nready")
    assert [chunk.text for chunk in read_all(reader, clock)] == ["loading\n"]
    add(log, " now\nTraceback")
    assert [(chunk.offset, chunk.text) for chunk in read_all(reader, clock)] == [(8, "ready now\n")]
    assert [chunk.text for chunk in read_all(reader, clock, is_last=True)] == ["Traceback"]
    assert read_all(reader, clock, is_last=True) == []


def test_a_chunk_that_the_panel_did_not_take_comes_again_with_the_same_place(log, clock, reader):
    add(log, "one\n")
    assert reader.next(clock.now) == reader.next(clock.now)


def test_the_start_comes_in_full_and_afterwards_a_bounded_rate_with_what_was_left_out_counted(log, clock, reader):
    line = b"x" * 99 + b"\n"
    add(log, line * 5_000)  # 500 kB
    assert sum(len(chunk.text) for chunk in read_all(reader, clock)) == 500_000
    add(log, line * 10_000)
    chunks = read_all(reader, clock)
    for _ in range(60):
        clock.now += 1.0
        chunks += read_all(reader, clock)
    shown, skipped = sum(len(chunk.text) for chunk in chunks), sum(chunk.skipped_bytes for chunk in chunks)
    assert shown <= 24_288 + 60 * 8_192
    assert shown + skipped == 1_000_000
    assert chunks[-1].text.endswith("x\n")


def test_offsets_count_everything_so_that_what_is_said_twice_is_known(log, clock, reader):
    add(log, "a\n" * 100)
    add(log, b"\xff\xfe broken \n")
    chunks = read_all(reader, clock)
    add(log, "end\n")
    assert "�� broken" in chunks[-1].text
    assert read_all(reader, clock)[0].offset == 200 + len(b"\xff\xfe broken \n")


def test_nothing_is_lost_when_the_file_is_moved_aside_in_between(log, clock, reader):
    add(log, "first\nsecond\n")
    reader.taken(reader.next(clock.now), 6)  # the panel has the first line only
    assert keeper.rotate(str(log), 5)
    add(log, "third\n")
    assert "".join(chunk.text for chunk in read_all(reader, clock)) == "second\nthird\n"
    assert log.with_name("1.log.1").read_text() == "first\nsecond\n"


def test_what_was_moved_away_twice_before_it_was_read_is_counted(log, clock, reader):
    for text in ("lost lost\n", "kept\n", "new\n"):
        assert keeper.rotate(str(log), 1) or text.startswith("lost")
        add(log, text)
    chunks = read_all(reader, clock)
    assert "".join(chunk.text for chunk in chunks) == "kept\nnew\n"
    assert sum(chunk.skipped_bytes for chunk in chunks) == 10


def test_a_line_without_end_is_cut_and_the_rest_of_it_left_out(log, clock, reader):
    add(log, "y" * 200_000 + "\nafter\n")
    chunks = read_all(reader, clock)
    assert chunks[0].text == "y" * (logs.CHUNK_BYTES - logs.BLIND_BYTES)
    assert chunks[-1].text == "after\n"
    assert sum(len(chunk.text) + chunk.skipped_bytes for chunk in chunks) == 200_007


def test_a_log_that_is_not_there_says_nothing(clock, reader, log):
    assert reader.next(clock.now) is None
    assert last_line(log) == ""
    add(log, "RuntimeError: no memory\n\n  \n")
    assert last_line(log) == "RuntimeError: no memory"


def order(**fields):
    needed = {"id": 1, "generation": 1, "endpoint": "a", "revision": 1, "wanted": "run", "runtime": "process"}
    return ReplicaOrder(**needed, command=[], port=1, ready=ReadyCheck("tcp"), **fields)


def test_secrets_are_masked_however_they_are_written():
    redact = Redactor(
        order(
            secrets={"TOKEN": 'hf_a"b/c', "CERT": "-----BEGIN-----\nbm90IGEgcmVhbCBrZXk=\n"}, upstream_key="sk-upstream"
        )
    )
    said = 'token=hf_a"b/c json={"t": "hf_a\\"b/c"} url=?t=hf_a%22b%2Fc key sk-upstream\nline bm90IGEgcmVhbCBrZXk= end'
    shown = redact(said)
    assert shown == f'token={MASK} json={{"t": "{MASK}"}} url=?t={MASK} key {MASK}\nline {MASK} end'


def test_an_order_without_secrets_masks_nothing():
    assert Redactor(order(secrets={"EMPTY": "", "SHORT": "ab"}))("ab cd") == "ab cd"


def test_a_containers_lines_are_taken_once_also_when_its_engine_stamps_by_the_second():
    first = b"2026-12-01T10:00:00Z one\n2026-12-01T10:00:01Z two\n"
    lines, place = lines_after(Place("c"), first)
    assert lines == [b"one\n", b"two\n"]
    assert lines_after(place, first) == ([], place)
    more = first + b"2026-12-01T10:00:01Z three\n2026-12-01T10:00:02Z four"
    lines, place = lines_after(place, more)
    assert lines == [b"three\n", b"four\n"]
    assert lines_after(place, more)[0] == []


def test_a_containers_lines_with_fractions_are_ordered_as_numbers():
    _, place = lines_after(Place("c"), b"2026-12-01T10:00:00.5Z half\n")
    later = b"2026-12-01T10:00:00.123456789Z before\n2026-12-01T10:00:00.500000001Z after\n"
    assert lines_after(place, later)[0] == [b"after\n"]


def test_a_line_that_was_cut_by_the_bound_is_left_for_the_next_time():
    lines, place = lines_after(Place("c"), b"2026-12-01T10:00:00Z one\n2026-12-01T10:00:01Z tw", is_cut=True)
    assert (lines, place.stamp) == ([b"one\n"], "2026-12-01T10:00:00Z")
