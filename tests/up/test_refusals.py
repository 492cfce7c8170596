"""What keeps the panel from starting is a sentence that names the cause and the way out."""

import asyncio
import os
import pwd
import socket
import subprocess
import sys

import pytest

from panel.up import account, command, datadir, ports, postgres, services
from panel.up.errors import UpError

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: gives files to another user")
DAEMON = "daemon"


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_in_use_is_named_with_the_variable_and_a_free_one(listening):
    with pytest.raises(UpError) as caught:
        ports.require_free("127.0.0.1", listening)
    sentence = str(caught.value)
    assert sentence.startswith(f"Port {listening} on 127.0.0.1 is in use")
    assert f"(process {os.getpid()})" in sentence
    assert "FLEETDECK_PORT=" in sentence


def test_a_free_port_is_no_obstacle():
    ports.require_free("127.0.0.1", ports.free_port())


def test_an_address_of_another_machine_is_refused_with_the_variable():
    with pytest.raises(UpError, match="FLEETDECK_HOST"):
        ports.require_free("192.0.2.1", 8000)


def test_a_port_beyond_the_last_one_is_refused_with_the_variable():
    with pytest.raises(UpError, match="FLEETDECK_PORT"):
        ports.require_free("127.0.0.1", 70000)


@is_root
def test_a_data_directory_of_another_user_is_refused_with_both_names(tmp_path):
    os.chown(tmp_path, pwd.getpwnam(DAEMON).pw_uid, -1)
    with pytest.raises(UpError, match=rf"belongs to {DAEMON}, and you are root\..*FLEETDECK_DATA_DIR"):
        datadir.prepare(tmp_path)


def test_a_data_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UpError, match="is no directory"):
        datadir.prepare(tmp_path / "file")


def test_a_second_panel_on_the_same_data_is_refused_with_the_process_of_the_first(tmp_path):
    datadir.prepare(tmp_path)
    with (
        datadir.locked(tmp_path),
        pytest.raises(UpError, match=rf"already runs on .* \(process {os.getpid()}\)"),
        datadir.locked(tmp_path),
    ):
        pass
    with datadir.locked(tmp_path):
        pass


def test_data_of_another_postgres_is_refused_untouched(tmp_path):
    datadir.prepare(tmp_path)
    data = tmp_path / "postgres"
    data.mkdir()
    (data / "PG_VERSION").write_text("16\n")
    with pytest.raises(
        UpError, match=r"written by Postgres 16, and this Fleetdeck brings Postgres 18.*Nothing was changed"
    ):
        postgres.prepare(tmp_path, None, say=print)
    assert [path.name for path in data.iterdir()] == ["PG_VERSION"]


def test_the_note_of_a_server_cut_off_long_ago_is_no_obstacle_when_its_number_is_another_programs(tmp_path):
    note = tmp_path / "postmaster.pid"
    note.write_text(f"{os.getpid()}\n{tmp_path}\n")
    postgres._forget_stale_process(tmp_path)
    assert not note.exists()
    note.write_text("")
    postgres._forget_stale_process(tmp_path)
    assert note.exists()


def up(data_dir, port):
    """Run the command, which is to end by itself."""
    environment = {**os.environ, "FLEETDECK_DATA_DIR": str(data_dir), "FLEETDECK_PORT": str(port)}
    command = [sys.executable, "manage.py", "up"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=datadir.BASE_DIR)


def test_a_setting_that_cannot_be_used_is_a_sentence(tmp_path):
    done = up(tmp_path, "eighty")
    assert done.returncode == 1
    assert done.stderr.startswith("up: FLEETDECK_PORT cannot be used")
    assert "Traceback" not in done.stderr


def test_a_port_in_use_ends_the_command_before_anything_is_started(tmp_path, listening):
    done = up(tmp_path, listening)
    assert done.returncode == 1
    assert done.stderr.startswith(f"up: Port {listening} on 127.0.0.1 is in use")
    assert not (tmp_path / "postgres").exists()


def test_the_command_line_says_what_it_takes(capsys):
    with pytest.raises(SystemExit):
        command.parse(["--servers", "0", "--demo"])
    assert "--servers must be at least 1" in capsys.readouterr().err
    assert command.parse([]) == command.Options(has_agent=True, servers=None)
    assert command.parse(["--demo", "--no-agent"]) == command.Options(has_agent=False, servers=6)


@pytest.mark.parametrize(("is_demo", "expected"), [(False, "var"), (True, "var/demo")])
def test_the_demo_has_a_data_directory_of_its_own(monkeypatch, is_demo, expected):
    monkeypatch.setenv("FLEETDECK_DATA_DIR", "")
    assert datadir.locate(is_demo=is_demo) == datadir.BASE_DIR / expected
    assert os.environ["FLEETDECK_DATA_DIR"] == str(datadir.BASE_DIR / expected)


def test_a_socket_path_that_is_too_long_moves_to_the_runtime_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    short = tmp_path.parent
    assert postgres.choose_socket_dir(short, owner=1000) == short / "run" / "postgres"
    long = tmp_path / ("x" * 100)
    chosen = postgres.choose_socket_dir(long, owner=1000)
    assert str(chosen).startswith("/run/user/1/fleetdeck-1000-")
    assert chosen != postgres.choose_socket_dir(tmp_path / ("y" * 100), owner=1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "z" * 100)
    assert str(postgres.choose_socket_dir(long, owner=1000)).startswith("/tmp/fleetdeck-1000-")


def test_a_folder_for_the_socket_that_somebody_else_made_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "socket").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UpError, match="belongs to somebody else"):
        postgres._own_folder(tmp_path / "socket", None)


@is_root
def test_only_the_user_of_postgres_may_pass_through_a_closed_folder(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    target = closed / "inside"
    target.write_text("x")
    entry = pwd.getpwnam(DAEMON)
    who = account.Account(DAEMON, entry.pw_uid, entry.pw_gid)

    def can_read(user, group):
        command = ["cat", str(target)]
        return (
            subprocess.run(
                command, user=user, group=group, extra_groups=[], capture_output=True, check=False
            ).returncode
            == 0
        )

    assert not can_read(who.uid, who.gid)
    assert closed in account.let_through(who, target)
    assert can_read(who.uid, who.gid)
    assert not can_read(65534, 65534)
    assert (
        subprocess.run(["ls", str(closed)], user=who.uid, group=who.gid, capture_output=True, check=False).returncode
        != 0
    )
    assert account.let_through(who, target) == []
    closed.chmod(0o700)  # as somebody may: that closes the list's entries, too
    assert not can_read(who.uid, who.gid)
    assert account.let_through(who, target) == [closed]
    assert can_read(who.uid, who.gid)


@is_root
def test_a_program_that_another_user_cannot_run_is_noticed(tmp_path):
    entry = pwd.getpwnam(DAEMON)
    who = account.Account(DAEMON, entry.pw_uid, entry.pw_gid)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    assert not account.can_run(who, program)
    program.chmod(0o755)
    account.let_through(who, program)
    assert account.can_run(who, program)


@pytest.mark.parametrize("has_gcc", [False, True])
def test_a_demo_without_a_compiler_ends_before_anything_starts(tmp_path, monkeypatch, capsys, has_gcc):
    tools = tmp_path / "bin"
    tools.mkdir()
    if has_gcc:
        (tools / "gcc").write_text("#!/bin/sh\nexit 1\n")
        (tools / "gcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("FLEETDECK_DATA_DIR", str(tmp_path / "data"))
    assert command.main(["--demo"]) == 1
    sentence = capsys.readouterr().err
    assert "install gcc and libc6-dev" in sentence
    assert not (tmp_path / "data").exists()


def test_a_machine_with_a_compiler_may_run_the_demo():
    command.require_compiler()


class Silent:
    def say(self, _sentence):
        pass


def test_an_address_of_another_kind_of_database_is_refused_at_once_without_its_password():
    with pytest.raises(UpError, match="no address of a Postgres") as caught:
        asyncio.run(services._await_database(Silent(), "mysql://u:sekret@127.0.0.1/x"))
    assert "sekret" not in str(caught.value)


def test_a_database_that_is_not_there_is_named_with_the_whole_cause(monkeypatch):
    monkeypatch.setattr(services, "PATIENCE_SECONDS", -1)
    url = f"postgresql://u:sekret@127.0.0.1:{ports.free_port()}/x"
    with pytest.raises(UpError, match=r"DATABASE_URL.*[Cc]onnection refused") as caught:
        asyncio.run(services._await_database(Silent(), url))
    assert "sekret" not in str(caught.value)
