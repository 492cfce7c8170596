"""The processes of a panel and their command lines: the same for `manage.py up` and for docker-compose.yml."""

import sys
from collections.abc import Mapping
from pathlib import Path
from signal import Signals
from typing import Final

from fleet.agent.cli import EXIT_NOT_JOINED
from panel.up.child import ChildSpec
from panel.up.datadir import BASE_DIR

WEB_STOP_SECONDS: Final = 10.0
WORKER_STOP_SECONDS: Final = 20.0
AGENT_STATE: Final = "agent"
SIMULATION: Final = "simulation"
AGENT_RECORD: Final = "run/agent.json"
DEMO_RECORD: Final = "run/demo-token"
# What an agent has no business with, although it runs beside the panel here.
SECRETS: Final = frozenset(
    {
        "DATABASE_URL",
        "REDIS_URL",
        "BROKER_URL",
        "FLEETDECK_SECRET_KEY",
        "FLEETDECK_ENCRYPTION_KEYS",
        "FLEETDECK_ADMIN_PASSWORD",
    }
)


def web_command(host: str, port: int) -> tuple[str, ...]:
    """Return how the web process is run.

    The address of a caller is decided by panel/core/addresses.py, so uvicorn's own belief in proxy headers is off. Frames
    are small and many: compressing each costs half of the throughput. Agents report every few seconds: their connections
    are kept in between.
    """
    return (
        *("uvicorn", "panel.asgi:application", "--host", host, "--port", str(port)),
        *("--no-proxy-headers", "--no-server-header", "--no-access-log", "--log-level", "warning"),
        *("--http", "panel.core.onewrite:OneWriteProtocol"),
        *(
            "--ws",
            "websockets-sansio",
            "--ws-per-message-deflate",
            "false",
            "--timeout-graceful-shutdown",
            "5",
            "--timeout-keep-alive",
            "75",
        ),
    )


def worker_command() -> tuple[str, ...]:
    """Return how a worker is run; how many tasks at once says FLEETDECK_WORKER_CONCURRENCY."""
    return (
        *("celery", "--quiet", "--skip-checks", "--app", "panel.celery:app", "worker", "--loglevel", "INFO"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    )


def beat_command() -> tuple[str, ...]:
    """Return how beat is run: exactly one in an installation."""
    return (
        "celery",
        "--quiet",
        "--skip-checks",
        "--app",
        "panel.celery:app",
        "beat",
        "--loglevel",
        "INFO",
        "--pidfile",
        "",
    )


def prober_command() -> tuple[str, ...]:
    """Return how the panel probes, after the Python: any number may run, one of them works."""
    return ("manage.py", "prober")


def as_module(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command run by this very Python, whatever PATH says."""
    return (sys.executable, "-m", *command)


def web(environment: Mapping[str, str], *, host: str, port: int) -> ChildSpec:
    """Return the web process."""
    return ChildSpec(
        name="web",
        command=as_module(web_command(host, port)),
        environment=environment,
        directory=BASE_DIR,
        stop_seconds=WEB_STOP_SECONDS,
    )


def worker(environment: Mapping[str, str]) -> ChildSpec:
    """Return the worker. A killed supervisor ends it at once (SIGQUIT); tasks are repeatable and acknowledged late."""
    return ChildSpec(
        name="worker",
        command=as_module(worker_command()),
        environment=environment,
        directory=BASE_DIR,
        stop_seconds=WORKER_STOP_SECONDS,
        death_signal=Signals.SIGQUIT,
    )


def beat(environment: Mapping[str, str]) -> ChildSpec:
    """Return beat."""
    return ChildSpec(name="beat", command=as_module(beat_command()), environment=environment, directory=BASE_DIR)


def prober(environment: Mapping[str, str]) -> ChildSpec:
    """Return the panel's own prober."""
    command = (sys.executable, *prober_command())
    return ChildSpec(name="prober", command=command, environment=environment, directory=BASE_DIR)


def prepare(environment: Mapping[str, str], *, has_agent: bool, has_demo: bool) -> ChildSpec:
    """Return the step that brings database, static files, translations and the first people into order, and ends."""
    options = [*(["--agent"] if has_agent else []), *(["--demo"] if has_demo else [])]
    return ChildSpec(
        name="prepare",
        command=(sys.executable, "-m", "panel.up.prepare", *options),
        environment=environment,
        directory=BASE_DIR,
    )


def agent(environment: Mapping[str, str], *, panel_url: str, data_dir: Path) -> ChildSpec:
    """Return this machine's own agent, which joins by itself when it has not joined yet. It gets none of our secrets."""
    state_dir, record = data_dir / AGENT_STATE, data_dir / AGENT_RECORD
    return ChildSpec(
        name="agent",
        command=(
            *(sys.executable, "-m", "panel.up.agent", "--panel", panel_url),
            *("--state-dir", str(state_dir), "--record", str(record)),
        ),
        environment={name: value for name, value in environment.items() if name not in SECRETS},
        directory=BASE_DIR,
        final_codes=frozenset({EXIT_NOT_JOINED}),
    )


def demo(environment: Mapping[str, str], *, panel_url: str, data_dir: Path, servers: int) -> ChildSpec:
    """Return the simulated fleet: real agents on simulated cards."""
    return ChildSpec(
        name="demo",
        command=(
            *(sys.executable, "-m", "fleet.simulation", "run", "--panel", panel_url, "--servers", str(servers)),
            *("--data-dir", str(data_dir / SIMULATION), "--token-file", str(data_dir / DEMO_RECORD)),
        ),
        environment={name: value for name, value in environment.items() if name not in SECRETS},
        directory=BASE_DIR,
    )


def machines(environment: Mapping[str, str], *, data_dir: Path) -> ChildSpec:
    """Return what runs the machines that are ordered at the simulated provider: cards and a real agent for each."""
    command = ("manage.py", "simulated_machines", "--data-dir", str(data_dir / SIMULATION))
    return ChildSpec(name="machines", command=(sys.executable, *command), environment=environment, directory=BASE_DIR)
