"""When things are due, and how the panel changes it."""

import pytest

from fleet.agent import timetable as timetable_module
from fleet.agent import wire
from fleet.agent.intervals import Intervals
from fleet.agent.policy import Policy
from fleet.agent.state import Identity
from fleet.agent.timetable import Timetable
from tests.agent.clock import Clock


@pytest.fixture
def time(monkeypatch):
    made = Clock()
    monkeypatch.setattr(timetable_module, "time", made)
    return made


def run(timetable, time, seconds):
    """Let time pass as beat does; returns name → times at which it was due."""
    done = {}
    end = time.now + seconds
    while time.now <= end:
        for name, _ in timetable.take_due():
            done.setdefault(name, []).append(round(time.now - 1_000.0, 2))
        time.now += timetable.seconds_to_next()
    return done


@pytest.fixture
def timetable():
    return Timetable()


def test_a_rhythm_is_kept_without_drift(timetable, time):
    timetable.set_interval("sample", 5.0)
    assert run(timetable, time, 30)["sample"] == [0, 5, 10, 15, 20, 25, 30]


def test_a_report_comes_just_after_the_sample_that_it_wants(timetable, time):
    timetable.set_interval("sample", 5.0)
    timetable.set_interval("report", 5.0)
    done = run(timetable, time, 21)
    behind = [round(report - sample, 2) for sample, report in zip(done["sample"], done["report"], strict=True)]
    assert behind == [0.2] * 5


def test_what_was_missed_is_not_made_up_for(timetable, time):
    timetable.set_interval("sample", 5.0)
    timetable.take_due()
    time.now += 63
    assert timetable.take_due() == [("sample", 5.0)]
    assert timetable.take_due() == []


def test_a_shorter_interval_holds_at_once(timetable, time):
    timetable.set_interval("sample", 60.0)
    timetable.take_due()
    timetable.set_interval("sample", 1.0)
    assert run(timetable, time, 3)["sample"] == [1, 2, 3]


def test_a_longer_interval_holds_from_the_next_time_on(timetable, time):
    timetable.set_interval("sample", 5.0)
    timetable.take_due()
    timetable.set_interval("sample", 20.0)
    assert run(timetable, time, 50)["sample"] == [5, 25, 45]


def test_something_can_be_wanted_sooner_once(timetable, time):
    timetable.set_interval("sync", 30.0)
    run(timetable, time, 1)
    timetable.hasten("sync", 2.0)
    done = run(timetable, time, 60)["sync"]
    assert len(done) == 2
    assert done[0] == pytest.approx(3, abs=0.5)
    assert done[1] - done[0] == 30


def test_something_is_never_put_off_by_wanting_it_sooner(timetable, time):
    timetable.set_interval("report", 5.0)
    timetable.hasten("report", 100.0)
    assert run(timetable, time, 1)["report"] == [0.2]


def test_beat_sleeps_a_second_at_most_so_that_it_can_be_stopped(timetable, time):
    timetable.set_interval("sample", 60.0)
    timetable.take_due()
    assert timetable.seconds_to_next() == 1.0
    assert Timetable().seconds_to_next() == 1.0


# ---- what the panel asks


IDENTITY = Identity("http://panel.test", "fda_x", 1, "box", sample_interval_seconds=5.0, report_interval_seconds=10.0)


class Recorder:
    def __init__(self):
        self.calls = []

    def set_interval(self, name, seconds):
        self.calls.append((name, seconds))

    def hasten(self, name, seconds):
        self.calls.append((name, "sooner"))


@pytest.fixture
def recorder():
    return Recorder()


def answer(sample=5.0, report=10.0, version=1):
    return wire.ReportAnswer(1, version, sample, report, 1)


def test_a_timetable_gets_the_intervals_of_joining(recorder):
    Intervals(IDENTITY, Policy()).attach(recorder)
    assert recorder.calls == [("sample", 5.0), ("report", 10.0), ("sync", 30.0)]


def test_intervals_of_an_answer_hold_at_once_and_only_when_they_change(recorder):
    intervals = Intervals(IDENTITY, Policy())
    intervals.attach(recorder)
    intervals.follow_answer(answer())
    recorder.calls.clear()
    intervals.follow_answer(answer(sample=1.0, report=2.0))
    intervals.follow_answer(answer(sample=1.0, report=2.0))
    assert recorder.calls == [("sample", 1.0), ("report", 2.0)]


def test_changed_assignments_are_fetched_once(recorder):
    intervals = Intervals(IDENTITY, Policy())
    intervals.attach(recorder)
    recorder.calls.clear()
    for version in (1, 1, 2, 2):
        intervals.follow_answer(answer(version=version))
    assert recorder.calls == [("sync", "sooner"), ("sync", "sooner")]


@pytest.mark.parametrize(("asked", "held"), [(0.0, 1.0), (-3.0, 1.0), (0.5, 1.0), (600.0, 60.0), (7.5, 7.5)])
def test_intervals_stay_within_what_an_agent_does(asked, held):
    intervals = Intervals(IDENTITY, Policy())
    intervals.follow_answer(answer(sample=asked, report=asked))
    assert intervals.sample_seconds == held
    assert intervals.report_seconds == held


def test_a_machine_s_policy_bounds_what_a_panel_may_ask():
    policy = Policy(minimum_sample_interval_seconds=10.0, allow_pcie_throughput=False)
    intervals = Intervals(IDENTITY, policy)
    assert intervals.sample_seconds == 10.0
    intervals.follow_answer(answer(sample=1.0))
    intervals.follow_assignments(wire.Assignments(1, 1.0, 1.0, collect_pcie_throughput=True))
    assert intervals.sample_seconds == 10.0
    assert not intervals.is_pcie_wanted


def test_blocking_calls_are_made_when_the_panel_asks_and_the_machine_allows():
    intervals = Intervals(IDENTITY, Policy())
    intervals.follow_assignments(wire.Assignments(1, 1.0, 1.0, collect_pcie_throughput=True))
    assert intervals.is_pcie_wanted
