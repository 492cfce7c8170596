"""Engines outlive the agent: its loop ended and begun again, killed −9 as a process, or with a panel that is away."""

import json
import os
import sys

import pytest
from msgspec.structs import replace

from fleet.agent import wire
from fleet.agent.policy import Policy
from fleet.simulation.nvml import SimulatedHost
from tests.agent.engines.conftest import engine_order, is_alive, kill, pid_of
from tests.agent.process import Process
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_an_agent_that_starts_again_adopts_what_runs_and_needs_no_panel_for_it(machine):
    box = machine()
    order = engine_order()
    box.follow(order)
    pid = pid_of(box.until("ready"))
    box.end()
    box.panel.is_away = True
    box.begin()
    box.engines.resume()
    adopted = box.until("ready", health="ok")
    assert (pid_of(adopted), adopted.restarts) == (pid, 0)
    kill(pid)  # and it goes on keeping them running
    assert box.until("ready", restarts=1).handle != f"pid {pid}"


def test_an_engine_that_ended_meanwhile_is_started_again_with_the_status_that_nobody_waited_for(machine):
    box = machine()
    order = engine_order(1, "--exit-after-requests", 100_000, "--exit-status", 17)
    box.follow(order)
    pid = pid_of(box.until("ready"))
    box.end()
    kill(pid, 15)
    eventually((box.folder / "1" / "exit.json").exists)
    box.begin()
    box.engines.resume()
    again = box.until("ready", restarts=1)
    assert again.exit_code == 0
    assert pid_of(again) != pid


def test_old_replicas_of_a_machine_that_returns_are_stopped_when_orders_do_not_name_them(machine):
    box = machine()
    old, new = engine_order(1), engine_order(2)
    box.follow(old)
    pid = pid_of(box.until("ready"))
    box.end()
    box.begin()
    box.follow(new)
    box.until("ready", replica=2)
    eventually(lambda: [replica.record.order.id for replica in box.engines.replicas()] == [2])
    assert not is_alive(pid)


def test_a_pid_that_now_is_somebody_elses_is_never_touched(machine):
    box = machine()
    box.follow(engine_order())
    kill(pid_of(box.until("ready")), 15)
    box.until("ready", restarts=1)
    box.end()
    run_file = box.folder / "1" / "run.json"
    run = json.loads(run_file.read_text())
    real = run["engine"]
    run_file.write_text(json.dumps({**run, "engine": [os.getpid(), real[1]], "keeper": [os.getpid(), 1]}))
    box.begin()
    box.follow()  # no order names it: it would be stopped
    eventually(lambda: not (box.folder / "1").exists())
    assert is_alive(real[0])  # what we do not know by pid and start is not ours to end
    kill(real[0])


def test_a_killed_agent_finds_its_engines_again_and_leaving_stops_them(
    state, identity, panel, library, tmp_path, tmp_path_factory
):
    server = SimulatedHost.create(tmp_path / "server.nvml")
    bytecode = tmp_path_factory.mktemp("bytecode")
    state.write_identity(identity)
    order = engine_order(ready=replace(engine_order().ready, timeout_seconds=5.0))
    panel.assignments = wire.Assignments(2, 1.0, 1.0, replicas=[order])
    agent = Process(state, server, library, bytecode)
    try:
        first = eventually(lambda: _ready(panel), what=lambda: agent.log)
        agent.kill()
        assert is_alive(pid_of(first))
        panel.replica_reports.clear()
        agent = Process(state, server, library, bytecode)
        again = eventually(lambda: _ready(panel), what=lambda: agent.log)
        assert (again.handle, again.restarts) == (first.handle, 0)
        assert agent.stop() == 0
        assert is_alive(pid_of(first))
    finally:
        if agent.is_running():
            agent.kill()
        left = _leave(state)
    assert "Stopped 1 engine" in left
    assert not is_alive(pid_of(first))
    assert not state.engines_path.exists()


def _leave(state):
    import subprocess

    command = [sys.executable, "-m", "fleet.agent", "leave", "--state-dir", str(state.path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _ready(panel):
    told = [status for report in list(panel.replica_reports)[-1:] for status in report.replicas]
    return next((status for status in told if status.state == "ready"), None)


def test_an_agent_without_orders_has_no_thread_and_no_module_of_engines(state, identity):
    from fleet.agent.engines.lane import EngineLane

    lane = EngineLane(state, identity, Policy())
    lane.start()
    lane.follow(1, [])
    assert lane._engines is None
    assert not state.engines_path.exists()
