"""The demo fleet: simulated servers moved on once a second, and a real agent on each of them."""

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet.simulation.agents import AgentRunner
from fleet.simulation.nvml import build_library
from fleet.simulation.panel import PanelClient
from fleet.simulation.plan import ServerPlan, fleet_plan
from fleet.simulation.server import SimulatedServer
from fleet.simulation.workloads import Workloads

TICK_SECONDS: Final = 1.0
LONGEST_STEP_SECONDS: Final = 5.0
STARTS_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for on the command line."""

    panel_url: str
    token: str
    directory: Path
    servers: int
    seed: int = 1


class DemoFleet:
    """All servers of a plan, in one directory: files of cards, agents' states, the built library."""

    def __init__(self, options: Options, *, say: Callable[[str], None]) -> None:
        self.options = options
        self.say = say
        options.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.library = build_library(options.directory / "library")
        self.plans = fleet_plan(options.servers)
        self.directories = {plan.name: options.directory / "servers" / plan.name for plan in self.plans}
        for directory in self.directories.values():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.workloads = Workloads(options.directory / "workloads")
        now = time.time()
        self.servers = [
            SimulatedServer(plan, self.directories[plan.name], seed=options.seed, now=now, pid_of=self.workloads.start)
            for plan in self.plans
        ]

    async def run(self) -> None:
        """Go on until SIGTERM or SIGINT, then stop every agent."""
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        cards = sum(len(plan.cards) for plan in self.plans)
        self.say(f"{len(self.plans)} servers with {cards} GPUs, on a simulated NVML; logs in {self.options.directory}")
        panel = PanelClient(url=self.options.panel_url, token=self.options.token)
        starting = asyncio.Semaphore(STARTS_AT_ONCE)
        agents = [self._agent(plan, panel, starting) for plan in self.plans]
        tasks = [asyncio.create_task(agent.attend()) for agent in agents]
        tasks.append(asyncio.create_task(self._move()))
        try:
            await wait_for_first(stopping, tasks)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(agent.stop() for agent in agents))
            await panel.close()
            self.workloads.stop()
        failed = [result for result in results if isinstance(result, Exception)]
        if failed:
            raise failed[0]

    async def _move(self) -> None:
        """Move every server on, once a second; a second that was missed is made up for in one step."""
        before = time.time()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = time.time()
            for server in self.servers:
                server.step(now, min(max(now - before, 0.1), LONGEST_STEP_SECONDS))
            before = now

    def _agent(self, plan: ServerPlan, panel: PanelClient, starting: asyncio.Semaphore) -> AgentRunner:
        directory = self.directories[plan.name]
        return AgentRunner(
            plan,
            panel=panel,
            directory=directory,
            environment={
                "FLEETDECK_NVML_LIBRARY": str(self.library),
                "FLEETDECK_SIMULATION_FILE": str(directory / f"{plan.name}.nvml"),
            },
            starting=starting,
            say=self.say,
        )


async def wait_for_first(stopping: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Return when it is time to stop, or when one of the tasks, which never end by themselves, has failed."""
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
