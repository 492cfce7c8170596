"""`manage.py up`: the whole panel on this machine, from nothing to a page that can be opened.

Runs before Django is set up, because there may be no database yet and because a supervisor should be small.
"""

import argparse
import asyncio
import io
import os
import platform
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from panel.up import datadir, leftovers, plan, ports, services
from panel.up.agent import follow
from panel.up.datadir import BASE_DIR
from panel.up.errors import UpError
from panel.up.supervisor import Supervisor

WEB_READY_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 10.0
ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104
STOPPING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line. servers: how many the demo simulates; None without a demo."""

    has_agent: bool
    servers: int | None


@dataclass(frozen=True, slots=True)
class Address:
    """Where the panel listens, how processes of this machine reach it, and what to show to people."""

    host: str
    port: int
    local_url: str
    public_url: str

    async def answers(self) -> bool:
        """Whether /healthz says 200."""
        try:
            reader, writer = await asyncio.open_connection(ANYWHERE.get(self.host, self.host).strip("[]"), self.port)
        except OSError:
            return False
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            status = await asyncio.wait_for(reader.readline(), ANSWER_SECONDS)
        except (OSError, TimeoutError):
            return False
        finally:
            writer.close()
        return status.split(b" ")[1:2] == [b"200"]


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="manage.py up",
        description="Run the panel on this machine: Postgres, Valkey, web, worker, beat, prober and this machine's own agent.",
        epilog="Ctrl-C stops all of it; the data stays in FLEETDECK_DATA_DIR. docs/configuration.md has every variable.",
    )
    parser.add_argument("--no-agent", action="store_true", help="do not let this machine report as a server")
    parser.add_argument("--demo", action="store_true", help="add a simulated fleet, in a data directory of its own")
    parser.add_argument("--servers", type=int, default=6, metavar="N", help="how many servers to simulate (6)")
    options = parser.parse_args(arguments)
    if options.servers < 1:
        parser.error("--servers must be at least 1")
    return Options(has_agent=not options.no_agent, servers=options.servers if options.demo else None)


def read_address() -> Address:
    """Read host, port and public address from the settings. Raises UpError for values that cannot be used."""
    from django.core.exceptions import ImproperlyConfigured

    try:
        import panel.settings as settings  # noqa: PLR0402  # the star import inside hides the names from a from-import
    except (ImproperlyConfigured, ValueError) as error:
        raise UpError(f"{_unusable(error)}. docs/configuration.md has every variable.") from error
    host, port = settings.HOST, settings.PORT
    reachable = ANYWHERE.get(host, f"[{host}]" if ":" in host else host)
    return Address(host, port, f"http://{reachable}:{port}", settings.PUBLIC_URL)


def _unusable(error: Exception) -> str:
    """Return which variable cannot be used: a number that cannot be read names its text, not its variable."""
    for name, value in sorted(os.environ.items()):
        if name.startswith("FLEETDECK_") and value and repr(value) in str(error):
            return f"{name} cannot be used: {error}"
    return f"A setting cannot be used: {error}"


def require_compiler() -> None:
    """Raise UpError when the simulated fleet could not be built here: better now than after everything else runs."""
    from fleet.simulation.nvml import SimulationError
    from fleet.simulation.nvml.build import find_compiler

    try:
        find_compiler()
    except SimulationError as error:
        raise UpError(str(error)) from error


async def bring_up(supervisor: Supervisor, data_dir: Path, options: Options, address: Address) -> None:
    """Start everything in order, each step when the one before answers, and say so."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "DJANGO_SETTINGS_MODULE": "panel.settings"}
    supervisor.say(f"Data directory {data_dir}")
    await asyncio.to_thread(leftovers.end, supervisor.sessions, say=supervisor.say)
    environment |= await services.start(supervisor, data_dir, services.Given.from_environment(), environment)
    await supervisor.run_once(
        plan.prepare(environment, has_agent=options.has_agent, has_demo=options.servers is not None)
    )
    supervisor.say("The database is in order; starting web, worker, beat and prober")
    web = supervisor.start(plan.web(environment, host=address.host, port=address.port))
    supervisor.start(plan.worker(environment))
    supervisor.start(plan.beat(environment))
    supervisor.start(plan.prober(environment))
    await supervisor.until_ready(web, address.answers, seconds=WEB_READY_SECONDS, what="The web process")
    if options.has_agent and not _is_off(data_dir):
        supervisor.start(plan.agent(environment, panel_url=address.local_url, data_dir=data_dir))
    if options.servers is not None:
        supervisor.say(f"Simulating {options.servers} servers")
        for state_dir in (data_dir / plan.SIMULATION).glob("*/*/state"):
            follow(address.local_url, state_dir)
        supervisor.start(
            plan.demo(environment, panel_url=address.local_url, data_dir=data_dir, servers=options.servers)
        )
        supervisor.start(plan.machines(environment, data_dir=data_dir))
    _greet(supervisor, data_dir, address)


def _is_off(data_dir: Path) -> bool:
    """Whether somebody retired this machine in the panel."""
    record = datadir.read_json(data_dir / plan.AGENT_RECORD)
    return isinstance(record, dict) and record.get("is_off") is True


def _greet(supervisor: Supervisor, data_dir: Path, address: Address) -> None:
    password = data_dir / "admin-password"
    if password.exists():
        where = f"password in {password} unless you changed it"
    elif os.environ.get("FLEETDECK_ADMIN_PASSWORD"):
        where = "password as in FLEETDECK_ADMIN_PASSWORD unless it was changed"
    else:
        where = "with the password that it has"
    supervisor.say(f"Fleetdeck runs at {address.public_url}")
    supervisor.say(f"User admin, {where}")
    supervisor.say(f"Logs in {supervisor.logs}; Ctrl-C stops everything")


async def run(data_dir: Path, options: Options, address: Address) -> None:
    """Bring the panel up, keep it up until told to stop, and stop it in order; a second signal ends it at once."""
    supervisor = Supervisor(data_dir)
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            supervisor.say("Asked again: ending everything at once")
            supervisor.kill()
        stopping.set()

    for number in STOPPING_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop)
    starting = asyncio.create_task(bring_up(supervisor, data_dir, options, address))
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            await waiting
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        stopping.set()
        supervisor.say("Stopping")
        await supervisor.stop()
        supervisor.say("Stopped; the data is kept")


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code: 0 after a stop that was asked for, 1 with a sentence otherwise."""
    options = parse(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows question marks instead of ending us
    if platform.system() != "Linux":
        print("up: the embedded services run on Linux only", file=sys.stderr)
        return 1
    os.chdir(BASE_DIR)
    try:
        if options.servers is not None:
            require_compiler()
        data_dir = datadir.locate(is_demo=options.servers is not None)
        datadir.prepare(data_dir)
        with datadir.locked(data_dir):
            address = read_address()
            ports.require_free(address.host, address.port)
            asyncio.run(run(data_dir, options, address))
    except UpError as error:
        print(f"up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
