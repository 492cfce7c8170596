"""What the agent keeps on its machine."""

import os
import stat
import subprocess
import sys

import pytest

from fleet.agent import state as state_module
from fleet.agent.policy import Policy, PolicyError, load_policy
from fleet.agent.state import Identity, StateDirectory, StateError, Status, default_state_dir

IDENTITY = Identity("https://panel.test", "fda_abcdefgh_secret", 7, "box", 5.0, 5.0, "rack 7", "/etc/ca.pem")
STATUS = Status(1, 1, "ok", "", {"GPU-a": "ok"}, 0, 0, 0, 1.0, "")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_an_identity_is_kept_whole(state):
    assert state.identity() is None
    state.write_identity(IDENTITY)
    assert state.identity() == IDENTITY


def test_a_token_is_for_its_owner_s_eyes_only_whatever_the_umask(state):
    before = os.umask(0)
    try:
        state.write_identity(IDENTITY)
        state.write_status(STATUS)
    finally:
        os.umask(before)
    assert mode(state.path) == 0o700
    assert mode(state.identity_path) == mode(state.status_path) == 0o600


def test_a_damaged_identity_is_said_in_words(state):
    state.identity_path.write_text('{"panel_url": 3')
    with pytest.raises(StateError, match="join again"):
        state.identity()


def test_one_process_at_a_time_has_the_directory(state):
    other = StateDirectory(state.path)
    assert state.try_lock()
    assert not other.try_lock()
    assert other.running_pid() == os.getpid()
    state.unlock()
    assert other.running_pid() is None
    assert other.try_lock()
    other.unlock()


def test_the_lock_of_a_process_that_was_killed_is_free(state, tmp_path):
    code = (
        "import sys, os, signal; from pathlib import Path; from fleet.agent.state import StateDirectory;"
        "s = StateDirectory(Path(sys.argv[1])); assert s.try_lock(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(state.path)], check=False)
    assert state.running_pid() is None
    assert state.try_lock()


def test_leaving_forgets_everything_but_the_machine_s_policy(state):
    state.write_identity(IDENTITY)
    state.write_status(STATUS)
    (state.spool_path / "refused").mkdir(parents=True)
    (state.spool_path / "refused/1.batch").write_bytes(b"x")
    (state.spool_path / "2.batch").write_bytes(b"y")
    state.forget()
    assert state.identity() is None
    assert state.status() is None
    assert list(state.spool_path.rglob("*")) == []
    assert state.policy_path.exists()


def test_a_directory_of_another_user_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(state_module.os, "geteuid", lambda: 4_242)
    with pytest.raises(StateError, match="another user"):
        StateDirectory(tmp_path).prepare()


def test_a_path_that_is_a_file_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot be used"):
        StateDirectory(tmp_path / "file").prepare()


def test_the_usual_place_is_the_system_s_for_root_and_one_s_own_otherwise(monkeypatch, tmp_path):
    monkeypatch.setattr(state_module.os, "geteuid", lambda: 0)
    assert str(default_state_dir()) == "/var/lib/fleetdeck-agent"
    monkeypatch.setattr(state_module.os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert default_state_dir() == tmp_path / ".local/state/fleetdeck-agent"


# ---- the machine's policy


def test_the_template_is_a_policy_of_the_defaults(state):
    assert load_policy(state.policy_path) == Policy()


def test_what_the_template_shows_are_the_defaults(state):
    shown = "\n".join(line.removeprefix("# ") for line in state.policy_path.read_text().splitlines() if " = " in line)
    state.policy_path.write_text(shown)
    assert load_policy(state.policy_path) == Policy()
    assert {line.split(" = ")[0] for line in shown.splitlines()} == set(Policy.__struct_fields__)


def test_a_policy_that_is_there_is_not_overwritten(state):
    state.policy_path.write_text("read_kernel_log = false\n")
    state.prepare()
    assert not load_policy(state.policy_path).read_kernel_log


@pytest.mark.parametrize(
    "text",
    [
        "spool_hours = -1",
        "spool_megabytes = 'many'",
        "alow_pcie_throughput = false",
        "= 3",
        "minimum_sample_interval_seconds = 0",
    ],
)
def test_a_policy_with_a_mistake_is_an_error_not_a_default(state, text):
    state.policy_path.write_text(text)
    with pytest.raises(PolicyError, match=r"policy\.toml"):
        load_policy(state.policy_path)
