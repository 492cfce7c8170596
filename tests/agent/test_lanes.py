"""Calls that may never return."""

import threading

import pytest

from fleet.agent.lanes import Done, Errand, Failed, Lanes, Silent
from tests.waiting import eventually


@pytest.fixture
def gate():
    """An event that ends all hanging jobs when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_jobs_run_in_order_in_one_thread():
    threads = []
    outcomes = Lanes().run({key: lambda: threads.append(threading.get_ident()) for key in "abc"}, deadline=5)
    assert list(outcomes) == ["a", "b", "c"]
    assert len(set(threads)) == 1


def test_an_error_is_one_job_s():
    def fail():
        raise ValueError("no")

    outcomes = Lanes().run({"bad": fail, "good": lambda: 42}, deadline=5)
    assert isinstance(outcomes["bad"], Failed)
    assert str(outcomes["bad"].error) == "no"
    assert outcomes["good"] == Done(42)


def test_a_job_that_hangs_holds_up_none_behind_it(gate):
    outcomes = Lanes().run({"a": lambda: 1, "hung": gate.wait, "b": lambda: 2, "c": lambda: 3}, deadline=0.1)
    assert (outcomes["a"], outcomes["b"], outcomes["c"]) == (Done(1), Done(2), Done(3))
    assert isinstance(outcomes["hung"], Silent)


def test_eight_jobs_that_hang_cost_two_deadlines_not_eight(gate):
    lanes = Lanes()
    done = threading.Event()

    def run():
        lanes.run({str(number): gate.wait for number in range(8)}, deadline=0.5)
        done.set()

    threading.Thread(target=run, daemon=True).start()
    assert done.wait(3.0), "one deadline after the other would be four seconds"
    assert len(lanes._left_behind) == 8
    assert all(thread.is_alive() for thread, _ in lanes._left_behind.values())


def test_a_key_whose_thread_is_out_is_not_asked_again(gate):
    lanes = Lanes()
    first = lanes.run({"hung": gate.wait}, deadline=0.05)
    thread = lanes._left_behind["hung"][0]
    again = lanes.run({"hung": lambda: 42, "other": lambda: 1}, deadline=1)
    assert again["hung"] == first["hung"], "silent since the first call"
    assert again["other"] == Done(1)
    assert lanes._left_behind["hung"][0] is thread


def test_a_key_is_asked_again_once_its_thread_came_back(gate):
    lanes = Lanes()
    lanes.run({"hung": gate.wait}, deadline=0.05)
    assert lanes.has_silent()
    gate.set()
    eventually(lambda: not lanes.has_silent())
    assert lanes.run({"hung": lambda: 42}, deadline=5)["hung"] == Done(42)


def test_what_a_late_job_returns_is_not_taken_for_a_later_answer(gate):
    lanes = Lanes()
    lanes.run({"slow": lambda: gate.wait() and "late"}, deadline=0.05)
    gate.set()
    eventually(lambda: not lanes.has_silent())
    assert lanes.run({"slow": lambda: "fresh"}, deadline=5)["slow"] == Done("fresh")


def test_an_errand_is_waited_for_a_little_and_later_again(gate):
    errand = Errand(lambda: gate.wait() and "done")
    assert errand.outcome(0.02) is None
    gate.set()
    assert errand.outcome(5) == Done("done")
