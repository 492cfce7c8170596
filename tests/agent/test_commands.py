"""What people type."""

import io
import json
import os
import subprocess
import sys

import pytest

from fleet.agent.cli import EXIT_ALREADY_RUNNING, EXIT_NOT_JOINED, main
from fleet.agent.state import StateDirectory
from fleet.simulation.cards import H200

TOKEN = "fdj_abcdefgh_good"


@pytest.fixture
def run(tmp_path):
    """Run one command on a state directory of this test."""

    def command(name, *arguments):
        return main([name, "--state-dir", str(tmp_path / "state"), *arguments])

    command.state = StateDirectory(tmp_path / "state")
    return command


def test_joining_keeps_who_the_agent_is(run, panel, capsys):
    assert run("join", "--panel", f"{panel.url}/", "--token", TOKEN, "--name", "rack 7") == 0
    identity = run.state.identity()
    assert identity.panel_url == panel.url
    assert identity.agent_token == "fda_abcdefgh_secret"
    assert identity.server_name == "box"
    assert panel.joins[0].hostname == "rack 7"
    assert "Joined" in capsys.readouterr().out


def test_a_token_may_come_by_standard_input_so_that_no_list_of_processes_shows_it(run, panel, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    assert run("join", "--panel", panel.url, "--token", "-") == 0
    assert panel.joins[0].token == TOKEN


def test_a_refused_token_is_an_error_in_words_and_leaves_nothing(run, panel, capsys):
    assert run("join", "--panel", panel.url, "--token", "fdj_abcdefgh_used") == 1
    assert "used up" in capsys.readouterr().err
    assert run.state.identity() is None


def test_a_machine_joins_once_unless_told_otherwise(run, panel, capsys):
    run("join", "--panel", panel.url, "--token", TOKEN)
    assert run("join", "--panel", panel.url, "--token", TOKEN) == 1
    assert "already" in capsys.readouterr().err
    assert len(panel.joins) == 1, "the second token is not used up"
    run.state.spool_path.mkdir()
    (run.state.spool_path / "000000000001-old-1-1.batch").write_bytes(b"of the earlier server")
    assert run("join", "--panel", panel.url, "--token", TOKEN, "--replace") == 0
    assert list(run.state.spool_path.glob("*.batch")) == []


@pytest.mark.parametrize(
    "url", ["panel.test", "ftp://panel.test", "https://", "https://me:secret@panel.test", "https://panel.test/?a=1"]
)
def test_addresses_that_are_none_are_said_in_words(run, url, capsys):
    assert run("join", "--panel", url, "--token", TOKEN) == 1
    assert "address" in capsys.readouterr().err


def test_running_without_having_joined_has_a_status_of_its_own(run, capsys):
    assert run("run") == EXIT_NOT_JOINED
    assert "has not joined" in capsys.readouterr().err


def test_two_agents_do_not_run_on_one_state(run, panel, capsys):
    run("join", "--panel", panel.url, "--token", TOKEN)
    other = StateDirectory(run.state.path)
    assert other.try_lock()
    try:
        assert run("run") == EXIT_ALREADY_RUNNING
    finally:
        other.unlock()
    assert "runs already" in capsys.readouterr().err


def test_a_mistake_in_the_policy_keeps_the_agent_from_running(run, panel, capsys):
    run("join", "--panel", panel.url, "--token", TOKEN)
    run.state.policy_path.write_text("tell_proces_names = false\n")
    assert run("run") == 1
    assert "tell_proces_names" in capsys.readouterr().err


def test_leaving_tells_the_panel_and_forgets_it(run, panel, capsys):
    run("join", "--panel", panel.url, "--token", TOKEN)
    assert run("leave") == 0
    assert panel.has_left
    assert run.state.identity() is None


def test_leaving_without_the_panel_needs_force(run, panel, capsys):
    run("join", "--panel", panel.url, "--token", TOKEN)
    run.state.identity_path.write_text(run.state.identity_path.read_text().replace(panel.url, "http://127.0.0.1:1"))
    assert run("leave") == 1
    assert "could not be told" in capsys.readouterr().err
    assert run.state.identity() is not None
    assert run("leave", "--force") == 0
    assert run.state.identity() is None


def test_leaving_where_one_never_joined_is_an_error(run):
    assert run("leave") == 1


def test_the_status_of_a_machine_that_never_joined(run, capsys):
    assert run("status") == 1
    assert "has not joined" in capsys.readouterr().out


def test_the_status_of_an_agent_that_does_not_run(run, panel, capsys):
    run("join", "--panel", panel.url, "--token", TOKEN)
    capsys.readouterr()
    assert run("status") == 1
    assert "does not run" in capsys.readouterr().out
    assert run("status", "--json") == 1
    assert json.loads(capsys.readouterr().out) == {"panel": panel.url, "server": "box", "pid": None, "status": None}


def test_one_reading_is_printed_with_the_names_of_its_values(run, host, capsys):
    card = host.add_card(H200)
    card.set(utilization_percent=63)
    assert run("once") == 0
    reading = json.loads(capsys.readouterr().out)
    assert reading["driver"]["state"] == "ok"
    assert reading["gpus"][0]["uuid"] == card.uuid
    assert reading["gpus"][0]["sample"]["utilization_percent"] == 63
    assert reading["gpus"][0]["health"]["pcie_width"] == 16
    assert reading["host"]["cpu_count"] == os.cpu_count()
    assert reading["host_sample"]["memory_used_bytes"] > 0


def test_light_commands_do_not_load_what_only_running_needs():
    code = (
        "import sys; from fleet.agent.cli import main; main(['status', '--state-dir', '/nonexistent/agent']);"
        "print([name for name in ('celery', 'pynvml', 'httpx') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "['httpx']"


def test_the_agent_loads_nothing_of_the_panel():
    # Celery's message library looks for lazy strings of Django where that is installed; that is all.
    code = (
        "import sys, fleet.agent.app, fleet.agent.commands;"
        "print([name for name in ('django.conf', 'django.db', 'rest_framework', 'panel', 'monitoring', 'fleet.models')"
        " if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
