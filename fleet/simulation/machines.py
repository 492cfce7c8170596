"""Machines that are ordered one by one: simulated cards and a real agent for each, for as long as its provider runs it.

A machine does at its first start what its start-up script says: its agent joins with the line's address and token. It goes
silent when the machine is stopped, taken back or ended, and is back, as the same agent, when it is started again.
"""

import asyncio
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fleet.simulation.agents import AGENT_COMMAND, AgentRunner
from fleet.simulation.cards import A100, H100, H200, L20, L40S, RTX_4090, T4
from fleet.simulation.panel import PanelRefusedError
from fleet.simulation.plan import CardPlan, ServerPlan
from fleet.simulation.profile import CardProfile
from fleet.simulation.server import SimulatedServer

# Cards by the names that offers give them.
CARDS: Final[Mapping[str, CardProfile]] = {
    "H200 SXM 141GB": H200,
    "H100 SXM 80GB": H100,
    "A100 SXM 80GB": A100,
    "L40S 48GB": L40S,
    "L20 48GB": L20,
    "RTX 4090 24GB": RTX_4090,
    "T4 16GB": T4,
}
TOKEN: Final = re.compile(r"FLEETDECK_JOIN_TOKEN='?(fdj_[\w-]+)'?")
ADDRESS: Final = re.compile(r"(https?://[^\s'\"]+)/agent/install\.sh")
STARTS_AT_ONCE: Final = 2
# What a machine has of its surroundings: nothing of the panel that it happens to run beside.
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedMachine:
    """A machine as its provider has it. name: its id there; gpu: as the offer calls its cards."""

    name: str
    is_running: bool
    gpu: str
    gpu_count: int
    startup_script: str


class StartupLine:
    """What a start-up script says of joining: the panel's address and a token that is good for once."""

    def __init__(self, script: str) -> None:
        token, address = TOKEN.search(script), ADDRESS.search(script)
        self._token = token[1] if token else ""
        self.url = address[1] if address else ""

    @property
    def is_complete(self) -> bool:
        """Say whether the script lets an agent join."""
        return bool(self._token) and bool(urlsplit(self.url).hostname)

    async def join_token(self, plan: ServerPlan) -> str:  # noqa: ARG002 (the script was made for this machine)
        """Return the token, once: a script runs at the first start alone. Raises PanelRefusedError afterwards."""
        token, self._token = self._token, ""
        if not token:
            raise PanelRefusedError("its start-up script was run already, and the agent did not join")
        return token

    async def contract(self, plan: ServerPlan) -> bool:  # noqa: ARG002
        """Write nothing down: the panel ordered the machine and knows what it costs."""
        return False


class _Machine:
    """One machine: its cards, which live as long as it does, and the agent while it runs."""

    def __init__(self, seen: OrderedMachine, server: SimulatedServer, runner: AgentRunner) -> None:
        self.seen = seen
        self.server = server
        self.runner = runner
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Let the agent run."""
        if self.task is None:
            self.task = asyncio.create_task(self.runner.attend())

    async def stop(self) -> None:
        """End the agent."""
        if self.task is None:
            return
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        self.task = None
        await self.runner.stop()


class Machines:
    """All ordered machines, in one directory: `<directory>/<name>` holds a machine's cards, its agent's state and log."""

    def __init__(
        self,
        directory: Path,
        *,
        library: Path,
        say: Callable[[str], None],
        seed: int = 1,
        command: tuple[str, ...] = AGENT_COMMAND,
    ) -> None:
        self.directory = directory
        self.library = library
        self.say = say
        self.seed = seed
        self.command = command
        self.machines: dict[str, _Machine] = {}
        self._starting = asyncio.Semaphore(STARTS_AT_ONCE)
        self._refused: set[str] = set()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def follow(self, seen: Sequence[OrderedMachine]) -> None:
        """Start, stop and forget machines until they are as their provider says; `seen`: all that are not over."""
        known = {each.name: each for each in seen}
        for name in [name for name in self.machines if name not in known]:
            await self.machines.pop(name).stop()
            self.say(f"{name}: ended")
        for path in self.directory.iterdir():
            if path.name not in known:
                shutil.rmtree(path, ignore_errors=True)
        for name, each in known.items():
            machine = self.machines.get(name)
            if not each.is_running:
                if machine is not None and machine.task is not None:
                    await machine.stop()
                    self.say(f"{name}: stopped")
                continue
            if machine is None:
                machine = self._made(each)
            if machine is not None:
                machine.start()

    def _made(self, seen: OrderedMachine) -> _Machine | None:
        """Return a machine that starts for the first time, or that ran when this process was started."""
        line, profile = StartupLine(seen.startup_script), CARDS.get(seen.gpu)
        if profile is None or not line.is_complete:
            if seen.name not in self._refused:
                self._refused.add(seen.name)
                self.say(f"{seen.name}: not run: {'no start-up script' if profile else f'no simulated {seen.gpu}'}")
            return None
        directory = self.directory / seen.name
        directory.mkdir(mode=0o700, exist_ok=True)
        plan = machine_plan(seen, profile)
        machine = _Machine(
            seen,
            SimulatedServer(plan, directory, seed=self.seed, now=time.time()),
            AgentRunner(
                plan,
                panel=line,
                directory=directory,
                environment={
                    "FLEETDECK_NVML_LIBRARY": str(self.library),
                    "FLEETDECK_SIMULATION_FILE": str(directory / f"{plan.name}.nvml"),
                },
                starting=self._starting,
                say=self.say,
                command=self.command,
                surroundings={name: os.environ[name] for name in _KEPT if name in os.environ},
            ),
        )
        self.machines[seen.name] = machine
        return machine

    def step(self, now: float, seconds: float) -> None:
        """Move the cards of machines that run on by so many seconds."""
        for machine in self.machines.values():
            if machine.task is not None:
                machine.server.step(now, seconds)

    async def stop(self) -> None:
        """End every agent; the machines go on where they were when this is started again."""
        await asyncio.gather(*(machine.stop() for machine in self.machines.values()))


def machine_plan(seen: OrderedMachine, profile: CardProfile) -> ServerPlan:
    """Return what a fresh machine is: the cards that were ordered, with nothing to do."""
    return ServerPlan(
        name=seen.name,
        provider="simulated",
        region="",
        utc_offset_hours=0.0,
        driver_version="580.95.05",
        cuda_version=13000,
        cards=(CardPlan(profile=profile),) * seen.gpu_count,
    )
