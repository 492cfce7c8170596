"""One supervised process: back-off, named endings, output, stopping in time, nothing left behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panel.up.child import LONGEST_LINE_BYTES, Child, ChildSpec, copy_lines, ending, next_delay
from panel.up.output import Output


def spec(code, tmp_path, **options):
    return ChildSpec(
        name="thing", command=(sys.executable, "-c", code), environment=dict(os.environ), directory=tmp_path, **options
    )


class Told:
    """Collects what is said, and lets a test wait for a word."""

    def __init__(self):
        self.lines = []
        self.changed = asyncio.Event()

    def __call__(self, text=""):
        self.lines.append(text)
        self.changed.set()

    async def until(self, word, count=1):
        async with asyncio.timeout(20):
            while sum(word in line for line in self.lines) < count:
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture
def started(tmp_path):
    """Start children whose output lines and notes can be waited for."""

    def start(code, **options):
        told, seen = Told(), Told()

        def shown(line):
            seen(line)
            return False

        output = Output("thing", tmp_path, is_shown=shown)
        return Child(spec(code, tmp_path, **options), output, say=told, started=lambda: None), told, seen

    return start


def test_waiting_doubles_up_to_half_a_minute():
    delays, delay = [], 0.0
    for _ in range(8):
        delay = next_delay(delay, ran_seconds=0.1)
        delays.append(delay)
    assert delays == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_minute_of_running_well_begins_the_waiting_anew():
    assert next_delay(30, ran_seconds=61) == 1


@given(st.floats(0, 30), st.floats(0, 1e6))
def test_the_wait_is_never_shorter_than_a_second_nor_longer_than_thirty(previous, ran):
    assert 1 <= next_delay(previous, ran_seconds=ran) <= 30


def test_an_ending_is_told_in_words():
    assert ending(3) == "ended with code 3"
    assert ending(-9) == "was ended by SIGKILL"
    assert ending(-64) == "was ended by SIGRTMAX"
    assert ending(-200) == "was ended by signal 200"


async def test_a_process_that_ends_is_named_and_started_again(started):
    child, told, _ = started("print('here')")
    await told.until("thing (process")
    assert "ended with code 0" in told.lines[0]
    assert "starting it again in 1 s" in told.lines[0]
    await told.until("thing (process", count=2)
    assert "starting it again in 2 s" in told.lines[1]
    await child.stop()


async def test_a_process_that_says_that_it_is_of_no_use_stays_off(started):
    child, told, _ = started("raise SystemExit(3)", final_codes=frozenset({3}))
    await told.until("stays off until the next start")
    assert child.restarts == 0
    await child.stop()


async def test_a_killed_process_is_told_with_its_signal(started):
    child, told, seen = started("print('up', flush=True); import time; time.sleep(60)")
    await seen.until("up")
    os.kill(child.pid, signal.SIGKILL)
    await told.until("was ended by SIGKILL")
    await seen.until("up", count=2)
    await child.stop()


async def test_what_a_killed_process_had_started_is_ended_before_it_starts_again(started):
    code = "import subprocess,time; p=subprocess.Popen(['sleep','60']); print('grandchild', p.pid, flush=True); time.sleep(60)"
    child, told, seen = started(code)
    await seen.until("grandchild")
    grandchild = psutil.Process(int(seen.lines[0].split()[1]))
    os.kill(child.pid, signal.SIGKILL)
    await told.until("was ended by SIGKILL")
    assert grandchild.wait(10) is None or not grandchild.is_running()
    await child.stop()


async def test_a_process_that_finishes_in_time_is_not_killed(started):
    code = (
        "import os,signal,sys,time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'tidy\\n'), sys.exit(0)))\n"  # print may be at work
        "print('up', flush=True)\n"
        "time.sleep(60)"
    )
    child, told, seen = started(code)
    await seen.until("up")
    await child.stop()
    assert seen.lines == ["up", "tidy"]
    assert told.lines == []


async def test_a_process_that_does_not_listen_is_killed_after_its_time(started):
    code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    child, told, seen = started(code, stop_seconds=0.2)
    await seen.until("up")
    pid = child.pid
    await child.stop()
    assert told.lines == ["thing did not end within 0 s and is killed"]
    assert not psutil.pid_exists(pid)


async def test_a_program_that_is_not_there_is_told_and_tried_again(tmp_path, started):
    told = Told()
    missing = ChildSpec(name="thing", command=("/no/such/program",), environment={}, directory=tmp_path)
    child = Child(missing, Output("thing", tmp_path, is_shown=lambda _: False), say=told, started=lambda: None)
    await told.until("ended with code 1")
    assert "No such file" in child.last_line
    await child.stop()


async def test_a_child_does_not_get_the_interrupt_of_the_terminal(started):
    child, _, seen = started("import os; print(os.getsid(0) == os.getpid(), flush=True); import time; time.sleep(60)")
    await seen.until("True")
    await child.stop()


async def test_a_line_without_an_end_is_cut_and_not_kept_in_memory():
    stream, lines = asyncio.StreamReader(limit=LONGEST_LINE_BYTES), []
    stream.feed_data(b"x" * (3 * LONGEST_LINE_BYTES) + b"\nnext\nlast")
    stream.feed_eof()
    await copy_lines(stream, lines.append)
    assert lines[-2:] == ["next", "last"]
    assert max(map(len, lines)) <= 3 * LONGEST_LINE_BYTES
    assert sum(map(len, lines[:-2])) == 3 * LONGEST_LINE_BYTES


async def test_bytes_that_are_no_text_are_shown_all_the_same():
    stream, lines = asyncio.StreamReader(), []
    stream.feed_data(b"caf\xe9\r\n")
    stream.feed_eof()
    await copy_lines(stream, lines.append)
    assert lines == ["caf�"]


def test_output_goes_to_a_file_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr("panel.up.output.LOG_BYTES", 2_000)
    monkeypatch.setattr("panel.up.output.LOG_FILES", 2)
    output = Output("thing", tmp_path, is_shown=lambda _: False)
    for number in range(500):
        output.line(f"line {number}")
    output.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thing.log", "thing.log.1", "thing.log.2"]
    assert (tmp_path / "thing.log").read_text().endswith("line 499\n")


def test_the_terminal_shows_the_name_in_front_of_each_line(tmp_path, capsys):
    output = Output("web", tmp_path)
    output.line("hello")
    output.close()
    assert capsys.readouterr().out == "web      | hello\n"
    assert Path(tmp_path / "web.log").read_text() == "hello\n"
