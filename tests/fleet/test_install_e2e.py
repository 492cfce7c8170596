"""The line from the panel, run for real in a shell: as an ordinary user, without an init system, against a live panel."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.e2e.machine import SYSTEM_PYTHON, Machine, lacks_venv, package_cache, package_settings
from tests.e2e.running import wait_until
from tests.webpanel import WebPanel

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
QUICK = {
    "PIP_NO_COMPILE": "1"
}  # for installations after the first: Python compiles what the agent loads when it loads it


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    with WebPanel(tmp_path_factory.mktemp("panel")) as panel:
        yield panel


@pytest.fixture(scope="module")
def cache():
    with package_cache() as directory:
        yield directory


@pytest.fixture
def somebody(cache):
    if reason := lacks_venv():
        pytest.skip(reason)
    with Machine(PIP_CACHE_DIR=cache) as one:
        yield one


def make_token(panel, name, **body):
    answer = panel.api.post("/api/v1/join-tokens/", json={"name": name, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


def server(panel, name):
    rows = panel.api.get("/api/v1/servers/", params={"search": name, "state": ["ready", "degraded", "retired"]}).json()[
        "results"
    ]
    return next((row for row in rows if row["name"] == name), None)


def test_one_line_joins_a_machine_and_one_line_takes_it_away(panel, somebody):
    made = make_token(panel, "ordinary")
    done = somebody.run(made["command"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert [int(number) for number in re.findall(r"^\[(\d)/6\]", done.stdout, re.MULTILINE)] == [1, 2, 3, 4, 5, 6]
    assert "first report accepted" in done.stdout
    assert made["token"] not in done.stdout + done.stderr
    joined = server(panel, "ordinary")
    assert (joined["state"], joined["agent"]["version"]) == ("ready", "0.1.0")
    assert joined["facts"]["hostname"]
    assert f"/servers/{joined['id']}/" in done.stdout
    assert not list(Path(tempfile.gettempdir()).glob("fleetdeck-agent.*"))

    first = somebody.agent()
    assert first.username() == ("nobody" if os.geteuid() == 0 else psutil.Process().username())
    first.kill()
    again = wait_until(
        lambda: (one := somebody.agent()) and one.pid != first.pid and one, seconds=60, what="The agent's return"
    )

    refused = somebody.run(made["command"])  # once more, by mistake
    assert refused.returncode == 1
    assert "used already" in refused.stderr
    assert again.is_running()

    new = panel.api.post(f"/api/v1/servers/{joined['id']}/rejoin/", json={}).json()
    second = somebody.run(new["command"], **QUICK)
    assert second.returncode == 0, second.stdout + second.stderr
    after = server(panel, "ordinary")
    assert (after["id"], after["state"]) == (joined["id"], "ready")
    assert after["agent"]["joined_at"] > joined["agent"]["joined_at"]
    assert not again.is_running()

    renewed = somebody.run(f"sh {somebody.app}/install.sh", **QUICK)
    assert renewed.returncode == 0, renewed.stdout + renewed.stderr
    assert "renewed" in renewed.stdout
    wait_until(somebody.agent, seconds=60, what="The renewed agent")
    assert len(list(somebody.app.glob("venv-*"))) == 1
    seen = server(panel, "ordinary")["agent"]["last_seen_at"]
    wait_until(
        lambda: server(panel, "ordinary")["agent"]["last_seen_at"] > seen,
        seconds=60,
        what="A report of the renewed agent",
    )

    gone = somebody.run(f"sh {somebody.app}/install.sh --uninstall")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    left = server(panel, "ordinary")
    assert (left["state"], left["state_reason"]) == ("retired", "left")
    assert left["agent"]["revoked_at"] is not None
    assert not somebody.agents()
    assert not somebody.app.exists()
    assert not somebody.state.exists()


def bare_path(directory, *, without):
    """Make a PATH that has everything of this machine but some commands."""
    directory.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin"):
        for command in Path(place).glob("*"):
            with contextlib.suppress(FileExistsError):
                if command.name not in without:
                    (directory / command.name).symlink_to(command)
    return str(directory)


def oldest_python():
    found = [*Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10"), *Path("/usr/bin").glob("python3.10")]
    return str(found[0]) if found else None


def test_root_joins_with_the_oldest_python_and_neither_curl_nor_wget(panel, tmp_path):
    python = oldest_python()
    if python is None:
        pytest.skip("there is no Python 3.10 here")
    app = tmp_path / "agent"
    path = bare_path(tmp_path / "bin", without={"curl", "wget", "setsid"})
    environment = {"PATH": path, "HOME": str(tmp_path), "FLEETDECK_AGENT_DIR": str(app), "FLEETDECK_PYTHON": python}
    environment |= package_settings() | QUICK
    run = {"env": environment, "cwd": tmp_path, "capture_output": True, "text": True, "timeout": 500}
    done = subprocess.run(["sh", "-c", make_token(panel, "oldest")["command"]], check=False, **run)
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        assert server(panel, "oldest")["facts"]["python_version"].startswith("3.10.")
        assert subprocess.run(["sh", str(app / "control.sh"), "status"], check=False, **run).stdout.startswith(
            "running (pid "
        )
    finally:
        gone = subprocess.run(["sh", str(app / "install.sh"), "--uninstall"], check=False, **run)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert not app.exists()
    assert server(panel, "oldest")["state"] == "retired"


def test_a_token_that_was_taken_back_installs_nothing(panel, somebody):
    made = make_token(panel, "taken-back")
    assert panel.api.delete(f"/api/v1/join-tokens/{made['id']}/").status_code == 204
    done = somebody.run(made["command"])
    assert done.returncode == 1
    assert "taken back" in done.stdout + done.stderr
    assert not somebody.app.exists()
    assert not somebody.agents()


def test_a_changed_installer_is_not_run(panel, somebody):
    command = re.sub(r'echo "[0-9a-f]{64}', 'echo "' + "0" * 64, make_token(panel, "changed")["command"])
    done = somebody.run(command)
    assert done.returncode != 0
    assert "Fleetdeck agent" not in done.stdout
    assert not somebody.app.exists()


def test_a_mirror_that_does_not_answer_is_named_with_what_to_do(panel, somebody):
    made = make_token(panel, "mirror", mirror="http://127.0.0.1:9/simple")
    alone = {name: "" for name in somebody.environment if name.startswith("PIP_")}
    done = somebody.run(made["command"], **alone, PIP_CONFIG_FILE="/dev/null", PIP_RETRIES="0")
    assert done.returncode == 1
    assert "Installing its packages from http://127.0.0.1:9/simple" in done.stdout
    assert "could not be installed" in done.stderr
    assert "--mirror" in done.stderr
    assert not list(somebody.app.glob("venv*"))


@pytest.fixture
def script(panel, somebody):
    path = somebody.home / "install.sh"
    path.write_bytes(panel.api.get("/agent/install.sh").content)
    return path


def test_a_panel_that_is_not_there_is_a_clear_sentence(script, somebody):
    script.write_text(re.sub(r"^PANEL_URL=.*$", "PANEL_URL=http://127.0.0.1:9", script.read_text(), flags=re.MULTILINE))
    done = somebody.run(f"sh {script} --token fdj_x")
    assert done.returncode == 1
    assert "Could not fetch http://127.0.0.1:9/agent/" in done.stderr
    assert "Check" in done.stderr or "DNS" in done.stderr
    script.write_text(script.read_text().replace("http://127.0.0.1:9", "http://no-such-host.invalid"))
    assert "DNS" in somebody.run(f"sh {script} --token fdj_x").stderr


@pytest.mark.parametrize(
    ("stub", "sentence"),
    [
        ('case "$*" in *ensurepip*) exit 1 ;; *) exec {python} "$@" ;; esac', "apt-get install -y python3."),
        (
            'case "$*" in *version_info*) exit 1 ;; *) echo "Python 3.8.10" ;; esac',
            "needs Python 3.10 or newer (found: Python 3.8.10)",
        ),
    ],
)
def test_a_python_that_will_not_do_is_named_with_the_package_to_install(script, somebody, stub, sentence):
    directory = somebody.home / "bin"
    path = bare_path(directory, without={"python3", *(f"python3.{minor}" for minor in range(20))})
    fake = directory / "python3"
    fake.write_text("#!/bin/sh\n" + stub.replace("{python}", SYSTEM_PYTHON) + "\n")
    fake.chmod(0o755)
    done = somebody.run(f"sh {script} --token fdj_x", PATH=path, FLEETDECK_PYTHON="")
    assert done.returncode == 1
    assert sentence in done.stderr


def test_an_agent_whose_reports_do_not_arrive_is_said_to_with_its_log(panel, somebody, script):
    made = make_token(panel, "unheard")
    text = script.read_text().replace("fleet.agent run", "fleet.agent once")  # joins, and never reports
    script.write_text(text)
    told = {"FLEETDECK_JOIN_TOKEN": made["token"], "FLEETDECK_FIRST_REPORT_SECONDS": "3"}
    done = somebody.run(f"sh {script}", **told, **QUICK)
    assert done.returncode == 1
    assert "no report of it has reached the panel" in done.stderr
    assert "  | " in done.stderr


def test_without_a_token_the_way_to_one_is_shown(panel, script, somebody):
    done = somebody.run(f"sh {script}")
    assert done.returncode == 1
    assert f"{panel.url}/join/" in done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_accepts_the_unit(script, tmp_path):
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    environment = {**os.environ, "FLEETDECK_AGENT_DIR": str(tmp_path), "https_proxy": 'http://u:p%40"x\\y@proxy:1'}
    made = subprocess.run(
        ["sh", str(script), "--print-unit"], env=environment, capture_output=True, text=True, check=True
    )
    assert "Restart=always" in made.stdout
    unit = tmp_path / "fleetdeck-agent.service"
    unit.write_text(made.stdout)
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
