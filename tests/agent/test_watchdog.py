"""A process whose work has stopped ends itself."""

import subprocess
import sys

import pytest

from fleet.agent import watchdog as watchdog_module
from fleet.agent.watchdog import EXIT_FROZEN, Watchdog
from tests.agent.clock import Clock


def small():
    """An agent's memory; that of a test run is larger than an agent's may be."""
    return 55_000_000


@pytest.fixture
def time(monkeypatch):
    made = Clock(now=10_000.0)
    monkeypatch.setattr(watchdog_module, "time", made)
    return made


def test_work_that_goes_on_is_left_alone(time):
    ended = []
    watchdog = Watchdog(lambda: time.now - 60, end=lambda: ended.append(True), memory_bytes=small)
    assert not watchdog.look()
    assert not ended


def test_work_that_stopped_a_quarter_of_an_hour_ago_ends_the_process(time, caplog):
    ended = []
    last = time.now
    watchdog = Watchdog(lambda: last, end=lambda: ended.append(True), memory_bytes=small)
    time.now += 899
    assert not watchdog.look()
    time.now += 2
    assert watchdog.look()
    assert ended == [True]
    assert "gives up" in caplog.text


def test_an_agent_that_has_grown_far_too_large_ends_itself(time, caplog):
    ended = []
    sizes = [watchdog_module.MOST_MEMORY_BYTES, watchdog_module.MOST_MEMORY_BYTES + 1]
    watchdog = Watchdog(lambda: time.now, end=lambda: ended.append(True), memory_bytes=lambda: sizes.pop(0))
    assert not watchdog.look()
    assert watchdog.look()
    assert ended == [True]
    assert "403 MB" in caplog.text
    assert 1e6 < watchdog_module.resident_bytes() < 4e9


def test_the_end_is_not_zero_so_that_a_supervisor_starts_it_again():
    code = "from fleet.agent.watchdog import Watchdog; Watchdog(lambda: 0.0, frozen_seconds=0.0).look(); print('alive')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == EXIT_FROZEN
    assert run.stdout == ""
    assert "most recent call first" in run.stderr, "where it hung is in the log"
