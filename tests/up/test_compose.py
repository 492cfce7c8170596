"""docker-compose.yml, Dockerfile and Caddyfile say what the code has. No container engine is needed to know that."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from panel.core import liveness
from panel.up import alive, plan
from panel.up.datadir import BASE_DIR
from tests.architecture.variables import documented_variables

COMPOSE = yaml.safe_load((BASE_DIR / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = ("migrate", "web", "worker", "beat", "prober")
PORT = 8000
DOCKERFILE = (BASE_DIR / "Dockerfile").read_text().replace("\\\n", " ")
FOREIGN_VARIABLES = {"POSTGRES_PASSWORD", "VALKEY_PASSWORD", "WEB_REPLICAS", "WORKER_REPLICAS", "FLEETDECK_DOMAIN"}


def instructions(stage=None):
    """Return (instruction, rest) of the Dockerfile, of one stage or of all."""
    found, current = [], None
    for line in DOCKERFILE.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            current = rest.split(" AS ")[-1]
        if stage in (None, current):
            found.append((word, rest.strip()))
    return found


def test_the_file_is_what_the_compose_specification_allows():
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        "docker-compose.yml",
    ]
    done = subprocess.run(command, cwd=BASE_DIR, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_process_of_the_panel_is_run_as_make_up_runs_it():
    assert tuple(SERVICES["web"]["command"]) == plan.web_command("0.0.0.0", PORT)
    assert tuple(SERVICES["worker"]["command"]) == plan.worker_command()
    assert tuple(SERVICES["beat"]["command"]) == plan.beat_command()
    assert tuple(SERVICES["prober"]["command"]) == ("python", *plan.prober_command())
    assert tuple(SERVICES["migrate"]["command"]) == ("python", "-m", "panel.up.prepare")
    assert json.loads(dict(instructions("panel"))["CMD"]) == list(plan.web_command("0.0.0.0", PORT))


def test_every_module_that_is_named_exists():
    text = (
        (BASE_DIR / "docker-compose.yml").read_text() + DOCKERFILE + (BASE_DIR / "deploy/agent-entrypoint").read_text()
    )
    modules = set(re.findall(r"-m\"?,? \"?([a-z_]+(?:\.[a-z_]+)+)", text)) | {"panel.asgi", "panel.celery"}
    assert {"panel.up.prepare", "panel.up.alive", "panel.up.messages", "fleet.agent"} <= modules
    for module in modules:
        assert importlib.util.find_spec(module), module


@pytest.mark.parametrize("options", [["--help"], ["beat", "--help"], ["worker", "--help"]])
def test_celery_knows_every_option(options):
    known = subprocess.run(
        [sys.executable, "-m", "celery", *options], capture_output=True, text=True, check=True, cwd=BASE_DIR
    ).stdout
    for service in ("worker", "beat"):
        if options[0] not in ("--help", service):
            continue
        command = SERVICES[service]["command"]
        at = command.index(service)
        wanted = command[:at] if options[0] == "--help" else command[at + 1 :]
        for option in (word for word in wanted if word.startswith("--")):
            assert option in known, option


def test_uvicorn_knows_every_option():
    known = subprocess.run(
        [sys.executable, "-m", "uvicorn", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for option in (word for word in SERVICES["web"]["command"] if word.startswith("--")):
        assert option in known, option


def test_every_variable_is_one_that_the_code_has():
    for name in OURS:
        assert set(SERVICES[name]["environment"]) <= documented_variables(), name
    for word, rest in instructions("panel"):
        if word == "ENV":
            named = set(re.findall(r"\b(FLEETDECK_[A-Z_]+|[A-Z]+_URL)=", rest))
            assert named <= documented_variables()
    entrypoint = (BASE_DIR / "deploy/agent-entrypoint").read_text()
    assert set(re.findall(r"FLEETDECK_[A-Z_]+", entrypoint)) <= documented_variables()


def test_every_value_that_is_asked_for_stands_in_the_example():
    asked = set(re.findall(r"(?<!\$)\$\{([A-Z_]+)", (BASE_DIR / "docker-compose.yml").read_text()))
    offered = set(re.findall(r"^([A-Z_]+)=", (BASE_DIR / "deploy/env.example").read_text(), re.MULTILINE))
    assert asked == offered
    assert asked - FOREIGN_VARIABLES <= documented_variables()


def test_nothing_starts_with_a_secret_that_nobody_chose():
    text = (BASE_DIR / "docker-compose.yml").read_text()
    for name in ("POSTGRES_PASSWORD", "VALKEY_PASSWORD", "FLEETDECK_SECRET_KEY", "FLEETDECK_ENCRYPTION_KEYS"):
        assert f"${{{name}:?" in text
    assert not re.search(r"(PASSWORD|SECRET|KEYS)[A-Z_]*: (?!\$\{)\S", text)


def test_the_port_is_the_same_everywhere():
    assert SERVICES["web"]["expose"] == [str(PORT)]
    assert f"127.0.0.1:{PORT}/healthz" in SERVICES["web"]["healthcheck"]["test"][-1]
    assert dict(instructions("panel"))["EXPOSE"] == str(PORT)
    caddy = (BASE_DIR / "deploy/Caddyfile").read_text()
    assert re.search(rf"name web\s+port {PORT}\b", caddy)
    assert SERVICES["web"]["environment"]["DATABASE_URL"].endswith("@postgres:5432/fleetdeck")
    assert SERVICES["web"]["environment"]["REDIS_URL"].endswith("@valkey:6379/0")


def test_only_tls_is_open_to_the_outside():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"caddy": ["80:80", "443:443", "443:443/udp"]}
    assert COMPOSE["networks"]["inside"]["internal"] is True
    assert {name for name, service in SERVICES.items() if service["networks"] == ["inside"]} >= {"postgres", "valkey"}
    assert SERVICES["web"]["environment"]["FLEETDECK_BEHIND_PROXY"] == "true"
    assert SERVICES["web"]["environment"]["FLEETDECK_PUBLIC_URL"].startswith("https://")


def test_there_is_one_beat_and_any_number_of_web_processes_and_workers():
    assert SERVICES["beat"]["deploy"]["replicas"] == 1
    for name in ("web", "worker"):
        assert SERVICES[name]["deploy"]["replicas"].startswith("${")
        assert "container_name" not in SERVICES[name]


def test_each_service_waits_for_what_it_stands_on_and_tells_how_it_is():
    for name in ("web", "worker", "beat", "prober"):
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert SERVICES[name]["depends_on"]["valkey"] == {"condition": "service_healthy"}
    for name in set(SERVICES) - {"migrate", "caddy"}:
        assert "test" in SERVICES[name]["healthcheck"], name
    assert SERVICES["migrate"]["depends_on"]["postgres"] == {"condition": "service_healthy"}


def test_valkey_never_throws_a_task_away():
    assert "maxmemory-policy noeviction" in COMPOSE["configs"]["valkey"]["content"]
    assert SERVICES["valkey"]["configs"][0]["target"] in SERVICES["valkey"]["command"]


def test_processes_have_longer_to_stop_than_they_give_themselves():
    def seconds(name):
        return int(SERVICES[name]["stop_grace_period"].removesuffix("s"))

    assert seconds("web") > plan.WEB_STOP_SECONDS
    assert seconds("worker") > plan.WORKER_STOP_SECONDS


def test_every_volume_and_file_that_is_used_is_there():
    used = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    for source in used:
        assert (BASE_DIR / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], source
    assert set(COMPOSE["volumes"]) <= used


def with_arguments(text):
    """Return the text with the defaults of the Dockerfile's arguments in the place of their names."""
    defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))
    return re.sub(r"\$\{(\w+)\}", lambda match: defaults[match[1]], text)


def test_every_file_that_an_image_copies_exists_and_reaches_the_build():
    let_through = {line[1:] for line in (BASE_DIR / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for word, rest in instructions():
        if word != "COPY" or rest.startswith("--from="):
            continue
        for source in map(with_arguments, rest.split()[:-1]):
            assert (BASE_DIR / source).exists(), source
            assert any(source == path or Path(path) in Path(source).parents for path in let_through), source


def test_every_package_of_the_panel_is_in_its_image():
    copied = {
        rest.split()[0] for word, rest in instructions("panel") if word == "COPY" and not rest.startswith("--from")
    }
    packages = {path.parent.name for path in BASE_DIR.glob("*/__init__.py")} - {"tests"}
    assert packages <= copied


def test_images_install_by_hash_and_run_as_nobody_special():
    assert DOCKERFILE.count("--require-hashes") == 2
    for stage in ("panel", "agent"):
        assert ("USER", "fleetdeck") in instructions(stage)
    for name in OURS:
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["read_only"] is True
        assert SERVICES[name]["build"]["target"] == "panel"


def test_stages_that_are_built_upon_exist():
    stages = {rest.split(" AS ")[-1] for word, rest in instructions() if word == "FROM"}
    assert {"panel", "agent"} <= stages
    assert set(re.findall(r"--from=(\S+)", DOCKERFILE)) <= stages


def test_the_health_check_of_a_container_reads_what_the_processes_write():
    keys = {"worker": liveness.WORKERS_KEY, "beat": liveness.BEATS_KEY, "prober": liveness.PROBERS_KEY}
    assert keys == alive.KEYS
    assert alive.SILENT_SECONDS == liveness.SILENT_SECONDS
    asked = {SERVICES[name]["healthcheck"]["test"][-1] for name in ("worker", "beat", "prober")}
    assert asked == set(alive.KEYS)


def test_a_container_is_alive_by_its_own_processes_only(monkeypatch):
    from panel.core.valkey import valkey

    monkeypatch.setattr(alive.socket, "gethostname", lambda: "box-1")
    try:
        for kind, mine, other in (("worker", "celery@box-1", "celery@box-2"), ("beat", "box-1:7", "box-2:7")):
            valkey().delete(alive.KEYS[kind])
            assert alive.main([kind]) == 1
            valkey().hset(alive.KEYS[kind], other, str(liveness.now().timestamp()))
            assert alive.main([kind]) == 1
            valkey().hset(alive.KEYS[kind], mine, str(liveness.now().timestamp() - 60))
            assert alive.main([kind]) == 1
            valkey().hset(alive.KEYS[kind], mine, str(liveness.now().timestamp()))
            assert alive.main([kind]) == 0
    finally:
        valkey().delete(*alive.KEYS.values())
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    assert alive.main(["worker"]) == 1
    assert alive.main(["web"]) == 2


def test_python_in_the_image_is_one_that_the_panel_runs_on():
    wanted = re.search(r"python:(3\.\d+)-", DOCKERFILE)[1]
    ours = re.search(r'requires-python = ">=(3\.\d+)"', (BASE_DIR / "pyproject.toml").read_text())[1]
    assert tuple(map(int, wanted.split("."))) >= tuple(map(int, ours.split(".")))


def test_the_entry_of_the_agents_image_speaks_the_agents_language():
    tree = ast.parse((BASE_DIR / "fleet/agent/cli.py").read_text())
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    entrypoint = (BASE_DIR / "deploy/agent-entrypoint").read_text()
    assert set(re.findall(r"(?<=\s)--[a-z-]+", entrypoint)) <= words
    assert {"join", "run"} <= words
