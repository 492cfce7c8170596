"""The processes of a panel and their command lines: the same for `manage.py up` and for docker-compose.yml."""

import sys
from collections.abc import Mapping
from pathlib import Path
from signal import Signals
from typing import Final

from panel.up.child import ChildSpec
from panel.up.datadir import BASE_DIR

WEB_STOP_SECONDS: Final = 10.0
WORKER_STOP_SECONDS: Final = 20.0


def web_command(host: str, port: int) -> tuple[str, ...]:
    """Return how the web process is run.

    The address of a caller is decided by panel/core/addresses.py, so uvicorn's own belief in proxy headers is off. Frames
    are small and many: compressing each costs half of the throughput.
    """
    return (
        *("uvicorn", "panel.asgi:application", "--host", host, "--port", str(port)),
        *("--no-proxy-headers", "--no-server-header", "--no-access-log", "--log-level", "warning"),
        *("--ws", "websockets-sansio", "--ws-per-message-deflate", "false", "--timeout-graceful-shutdown", "5"),
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


def prepare(environment: Mapping[str, str]) -> ChildSpec:
    """Return the step that brings database, static files, translations and the admin into order, and ends."""
    return ChildSpec(
        name="prepare",
        command=(sys.executable, "-m", "panel.up.prepare"),
        environment=environment,
        directory=BASE_DIR,
    )


def agent(environment: Mapping[str, str], *, panel_url: str, state_dir: Path) -> ChildSpec:
    """Return this machine's own agent, which joins by itself when it has not joined yet."""
    return ChildSpec(
        name="agent",
        command=(sys.executable, "-m", "panel.up.agent", "--panel", panel_url, "--state-dir", str(state_dir)),
        environment=environment,
        directory=BASE_DIR,
    )


def demo(environment: Mapping[str, str], *, panel_url: str, directory: Path, servers: int) -> ChildSpec:
    """Return the simulated fleet: real agents on simulated cards."""
    return ChildSpec(
        name="demo",
        command=(
            *(sys.executable, "-m", "panel.up.demo", "--panel", panel_url),
            *("--data-dir", str(directory), "--servers", str(servers)),
        ),
        environment=environment,
        directory=BASE_DIR,
    )
