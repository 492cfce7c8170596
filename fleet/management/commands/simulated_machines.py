"""`manage.py simulated_machines`: run the machines that are ordered at the simulated provider, until told to stop."""

import asyncio
import signal
import time
from pathlib import Path
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, close_old_connections
from redis.exceptions import RedisError

from fleet.providers.simulated.adapter import KINDS
from fleet.providers.simulated.world import host_leave, host_note, machines_hosted
from fleet.simulation.machines import Machines, OrderedMachine
from fleet.simulation.nvml import SimulationError, build_library
from panel.core.clock import now

ROUND_SECONDS: Final = 1.0
LONGEST_STEP_SECONDS: Final = 5.0


class Command(BaseCommand):
    """While it runs, ordered machines of the simulated provider have cards and a real agent, joined by their script."""

    help = "Run the machines of the simulated provider: simulated cards and a real agent for each (needs gcc)."

    def add_arguments(self, parser: CommandParser) -> None:
        """Say where the machines are kept."""
        parser.add_argument(
            "--data-dir", type=Path, required=True, help="where cards, agents' states and logs are kept"
        )

    def handle(self, *_args: Any, data_dir: Path, **_options: Any) -> None:
        """Run until SIGTERM or Ctrl-C."""
        try:
            library = build_library(data_dir / "library")
        except SimulationError as error:
            raise CommandError(str(error)) from error
        asyncio.run(self._run(data_dir / "machines", library))

    async def _run(self, directory: Path, library: Path) -> None:
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        machines = Machines(directory, library=library, say=self._say)
        before = time.time()
        try:
            while not stopping.is_set():
                if (seen := await sync_to_async(self._look)()) is not None:
                    await machines.follow(seen)
                at = time.time()
                machines.step(at, min(max(at - before, 0.1), LONGEST_STEP_SECONDS))
                before = at
                await _pause(stopping)
        finally:
            await machines.stop()
            await sync_to_async(host_leave)()

    def _look(self) -> list[OrderedMachine] | None:
        """Return the machines that there are, and say that they are run; None while they cannot be had."""
        close_old_connections()
        try:
            found = [
                OrderedMachine(
                    name=each.id,
                    is_running=each.is_running,
                    gpu=KINDS[each.offer_key].gpu,
                    gpu_count=KINDS[each.offer_key].count,
                    startup_script=each.startup_script,
                )
                for each in machines_hosted(at=now())
                if each.offer_key in KINDS
            ]
            host_note()
        except (Error, RedisError) as error:
            self._say(f"Postgres or Valkey does not answer: {error}")
            return None
        return found

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


async def _pause(stopping: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stopping.wait(), ROUND_SECONDS)
    except TimeoutError:
        return
