"""This machine's agent: joins once, and reports to where the panel listens now."""

import json
import subprocess

import pytest

from fleet.agent.state import Identity, StateDirectory
from panel.up import agent


@pytest.fixture
def state(tmp_path):
    state = StateDirectory(tmp_path / "agent")
    state.prepare()
    return state


def test_an_agent_follows_the_panel_to_another_port_and_keeps_the_rest(state):
    before = Identity(panel_url="http://127.0.0.1:8000", agent_token="fda_x", server_id=7, server_name="box")
    state.write_identity(before)
    agent.follow("http://127.0.0.1:9000", state.path)
    after = state.identity()
    assert after.panel_url == "http://127.0.0.1:9000"
    assert (after.agent_token, after.server_id, after.server_name) == ("fda_x", 7, "box")


def test_a_machine_that_has_not_joined_has_nothing_to_follow_with(state):
    agent.follow("http://127.0.0.1:9000", state.path)
    assert state.identity() is None


class Ran:
    """Stands for the agent's own program."""

    def __init__(self, code=0):
        self.code = code
        self.calls = []

    def __call__(self, command, **options):
        self.calls.append((command, options))
        return subprocess.CompletedProcess(command, self.code)


def test_the_token_goes_to_the_agent_by_standard_input_and_is_forgotten_once_used(tmp_path, monkeypatch):
    record = tmp_path / "agent.json"
    record.write_text(json.dumps({"join_token_id": 5, "token": "fdj_secret"}))
    ran = Ran()
    monkeypatch.setattr(agent.subprocess, "run", ran)
    for _ in range(2):
        agent.join("http://127.0.0.1:8000", tmp_path / "agent", record)
    [(command, options)] = ran.calls
    assert "fdj_secret" not in " ".join(command)
    assert options["input"] == "fdj_secret"
    assert json.loads(record.read_text()) == {"join_token_id": 5, "is_joined": True}


def test_a_refused_join_is_told_and_can_be_tried_again(tmp_path, monkeypatch):
    record = tmp_path / "agent.json"
    record.write_text(json.dumps({"join_token_id": 5, "token": "fdj_secret"}))
    monkeypatch.setattr(agent.subprocess, "run", Ran(code=1))
    with pytest.raises(SystemExit, match=r"could not join \(code 1\)"):
        agent.join("http://127.0.0.1:8000", tmp_path / "agent", record)
    assert json.loads(record.read_text())["token"] == "fdj_secret"


def test_without_a_token_the_next_start_is_named_as_the_way_out(tmp_path):
    with pytest.raises(SystemExit, match="starting the panel again makes one"):
        agent.join("http://127.0.0.1:8000", tmp_path / "agent", tmp_path / "none.json")
