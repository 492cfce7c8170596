"""Jobs in the agent: claimed before they begin, one at a time, ended when they must be, their outcome never lost."""

import queue
import threading

import pytest

from fleet.agent import wire
from fleet.agent.jobs import lane as lane_module
from fleet.agent.jobs.child import Child
from fleet.agent.jobs.journal import Journal
from fleet.agent.jobs.lane import JobLane
from fleet.agent.jobs.task import Said, Task
from fleet.agent.policy import Policy
from fleet.agent.state import Identity
from tests.agent.panel import SmallPanel
from tests.waiting import eventually, free_port


class FakeChild:
    """A job whose lines the test writes."""

    made: list["FakeChild"] = []

    def __init__(self, task):
        self.task, self.pid = task, 1
        self.lines = queue.Queue()
        self.is_killed = False
        FakeChild.made.append(self)

    def say(self, **said):
        self.lines.put(Said(**said))

    def finish(self, **result):
        self.say(result=result)
        self.lines.put(None)

    def next(self, seconds):
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None

    def kill(self):
        self.is_killed = True
        self.lines.put(None)

    def end(self):
        return "the last words"


@pytest.fixture
def children():
    FakeChild.made = []
    return FakeChild.made


@pytest.fixture
def lanes(state, identity, children):
    """Make lanes of one state directory; ended afterwards."""
    made = []

    def make(*, who=identity, **policy):
        lane = JobLane(state, who, Policy(**policy), start_child=FakeChild)
        made.append(lane)
        lane.start()
        return lane

    yield make
    for lane in made:
        lane.close()


def order(number=1, **kwargs):
    return wire.JobOrder(**({"id": number, "kind": "acceptance", "time_limit_seconds": 60} | kwargs))


def told(panel):
    return [(job_id, report.state, report.reason) for job_id, report in list(panel.job_reports)]


def child(children, number=0):
    return eventually(lambda: children[number] if len(children) > number else None)


def test_a_job_is_claimed_then_run_and_its_result_is_sent(lanes, panel, children, identity):
    lanes().follow(1, [order(arguments={"target": "example.org"})])
    running = child(children)
    assert told(panel) == [(1, "claimed", "")]
    assert running.task.arguments == {"target": "example.org"}
    assert running.task.agent_token == identity.agent_token
    running.say(percent=40, step="disk")
    eventually(lambda: (1, "running", "") in told(panel))
    running.finish(cpu_count=8)
    eventually(lambda: (1, "succeeded", "") in told(panel))
    assert panel.job_reports[-1][1].result == {"cpu_count": 8}


def test_one_job_at_a_time_the_oldest_first(lanes, panel, children):
    lane = lanes()
    lane.follow(1, [order(3), order(5)])
    first = child(children)
    assert (first.task.job_id, len(children)) == (3, 1)
    first.finish(x=1)
    assert child(children, 1).task.job_id == 5


def test_a_job_that_is_listed_again_after_its_end_is_not_done_again(lanes, panel, children):
    lane = lanes()
    lane.follow(1, [order()])
    child(children).finish(x=1)
    eventually(lambda: (1, "succeeded", "") in told(panel))
    lane.follow(1, [order()])  # an answer that was on its way meanwhile
    lane.follow(2, [order(), order(2)])
    assert child(children, 1).task.job_id == 2


def test_a_job_that_is_not_listed_any_more_is_killed_and_nothing_is_said_of_it(lanes, panel, children, state):
    lane = lanes()
    lane.follow(4, [order()])
    running = child(children)
    lane.follow(3, [])  # overtaken: says nothing
    assert not running.is_killed
    lane.follow(5, [])
    eventually(lambda: running.is_killed)
    eventually(lambda: not list(state.jobs_path.glob("*.json")))
    assert told(panel) == [(1, "claimed", "")]


def test_a_panel_that_calls_a_job_cancelled_has_it_stopped(lanes, panel, children):
    lanes().follow(1, [order()])
    running = child(children)
    panel.job_answers.append((200, wire.JobAnswer("cancelled")))
    running.say(percent=10, step="cards")
    eventually(lambda: running.is_killed)


def test_a_claim_that_is_refused_begins_nothing(lanes, panel, children):
    panel.job_answers += [(200, wire.JobAnswer("expired")), (404, wire.Refusal("not_found", "There is none."))]
    lanes().follow(1, [order(1), order(2), order(3)])
    assert child(children).task.job_id == 3


def test_what_the_policy_forbids_is_refused_in_words(lanes, panel, children):
    lanes(forbidden_jobs=["acceptance"]).follow(1, [order()])
    eventually(lambda: told(panel) == [(1, "failed", "forbidden")])
    assert not children


def test_a_diagnosis_may_probe_this_machines_replicas_and_the_networks_of_its_policy(lanes, panel, children, identity):
    lanes(probe_networks=["10.0.0.0/8"]).follow(1, [order(kind="diagnose")], own_ports={20_001, 20_000})
    task = child(children).task
    assert (task.own_ports, task.probe_networks) == ([20_000, 20_001], ["10.0.0.0/8"])
    assert task.vantage == f"server-{identity.server_id}"


@pytest.mark.parametrize("kind", ["diagnose", "probe_round"])
def test_a_machine_that_allows_no_probes_measures_for_no_diagnosis(lanes, panel, children, kind):
    lanes(allow_probes=False).follow(1, [order(kind=kind)])
    eventually(lambda: told(panel) == [(1, "failed", "forbidden")])
    assert children == []


def test_an_agent_that_does_not_know_how_says_so(lanes, panel, children):
    lanes().follow(1, [order(kind="levitate")])
    eventually(lambda: told(panel) == [(1, "failed", "unknown_kind")])


def test_a_job_is_killed_at_its_deadline(lanes, panel, children):
    lanes().follow(1, [order(time_limit_seconds=1)])
    running = child(children)
    eventually(lambda: running.is_killed)
    eventually(lambda: (1, "failed", "time_limit") in told(panel))


def test_a_job_that_ends_without_a_result_has_crashed_with_its_last_words(lanes, panel, children):
    lanes().follow(1, [order()])
    child(children).lines.put(None)
    eventually(lambda: (1, "failed", "crashed") in told(panel))
    assert panel.job_reports[-1][1].detail == "the last words"


def test_an_agent_that_ends_says_that_its_job_was_interrupted(lanes, panel, children):
    lane = lanes()
    lane.follow(1, [order()])
    running = child(children)
    lane.close()
    assert running.is_killed
    assert told(panel)[-1] == (1, "failed", "interrupted")


def test_what_a_killed_agent_had_begun_is_told_by_the_next_one(state, lanes, panel, children):
    Journal(state.jobs_path).begin(7, "2c9cbbd8-0000-4000-8000-000000000000")
    (state.jobs_path / "8.json").write_text("{damaged")
    lanes().follow(1, [order(7)])
    eventually(lambda: told(panel) == [(7, "failed", "interrupted")])
    assert panel.job_reports[0][1].run_id == "2c9cbbd8-0000-4000-8000-000000000000"
    assert not children
    eventually(lambda: not list(state.jobs_path.glob("*.json")))


def test_a_result_waits_on_disk_for_a_panel_that_is_away(state, lanes, children, monkeypatch):
    monkeypatch.setattr(lane_module, "Backoff", lambda *_: lane_module_backoff())
    port = free_port()
    who = Identity(f"http://127.0.0.1:{port}", "fda_abcdefgh_secret", 7, "box")
    with SmallPanel(port) as first:
        lane = lanes(who=who)
        lane.follow(1, [order()])
        running = child(children)
        assert told(first) == [(1, "claimed", "")]
    running.say(percent=50, step="disk")  # nobody hears it
    running.finish(x=1)
    eventually(lambda: journal_of(state).waiting())
    with SmallPanel(port) as second:
        eventually(lambda: (1, "succeeded", "") in told(second))
    assert len(children) == 1


def lane_module_backoff():
    from fleet.agent.backoff import Backoff

    return Backoff(0.1, 0.2)


def journal_of(state):
    journal = Journal(state.jobs_path)
    journal.load()
    return journal


# ---- the real process


def a_task(state, **kwargs):
    given = {
        "job_id": 1, "kind": "acceptance", "arguments": {}, "seconds": 60.0, "panel_url": "http://127.0.0.1:9",
        "agent_token": "fda_x_y", "ca_file": "", "directory": str(state.path),
    }  # fmt: skip
    return Task(**(given | kwargs))


def lines_of(running):
    found = []
    while (said := running.next(60)) is not None:
        found.append(said)
    return found


def test_a_real_job_measures_without_card_and_panel(state):
    running = Child(a_task(state))
    lines = lines_of(running)
    assert next(said.step for said in lines if said.step) == "host"
    result = lines[-1].result
    assert result is not None, running.end()
    assert result["cpu_count"] >= 1
    assert result["disk"]["read_bytes_per_second"] > 0
    assert result["panel"]["missing"]["downlink"] == "unreachable"
    assert running.end() == ""
    assert not list(state.path.glob(".acceptance-*"))


def test_a_job_of_no_kind_crashes_with_words(state):
    running = Child(a_task(state, kind="levitate"))
    assert lines_of(running) == []
    assert "levitate" in running.end()


def test_a_killed_job_ends_at_once(state):
    running = Child(a_task(state))
    running.next(60)
    threading.Timer(0.1, running.kill).start()
    assert all(said.result is None for said in lines_of(running))
    running.end()
    assert running._process.poll() is not None
