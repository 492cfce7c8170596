"""The work of one simulated engine: it loads, takes so many requests at once, and gives words at a steady pace."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from fleet.simulation.engines import pages, records
from fleet.simulation.engines.facts import Facts

SECONDS_PER_TOKEN: Final = 0.02
LOOK_SECONDS: Final = 0.5
GIB_OF_A_CARD: Final = 80.0
LEAST_UTILIZATION: Final = 0.2


class Engine:
    """is_loaded: whether it answers. queue: work that outlives its caller, as ComfyUI does it, oldest first."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.work = pages.Work()
        self.is_loaded = False
        self.queue: list[int] = []
        self.loaded_share = 0.0
        self._slots = asyncio.Semaphore(facts.slots)
        self._guests = records.Guests(Path(facts.folder)) if facts.folder else None
        self._told: records.Guest | None = None

    async def load(self) -> None:
        """Take as long as a start takes, and say how far it is. Ends the process where the fault says so."""
        seconds, before = self.facts.load_seconds, 0.0
        for share, line in pages.start_lines(self.facts.model, seconds, self.facts.memory_share * GIB_OF_A_CARD):
            await asyncio.sleep((share - before) * seconds)
            before = self.loaded_share = share
            if share >= 0.6 and self.facts.fault in pages.FAULTS:
                say(pages.FAULTS[self.facts.fault])
                self.leave()
                sys.exit(1)
            say(line)
        self.is_loaded = True

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it."""
        self.work.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.work.waiting -= 1
        self.work.running += 1
        try:
            yield
        finally:
            self.work.running -= 1
            self.work.requests += 1
            self._slots.release()

    async def words(self, count: int) -> AsyncIterator[str]:
        """Give so many words, one after the other; none at all where the fault says that it stalls."""
        for number in range(count):
            await asyncio.sleep(SECONDS_PER_TOKEN)
            if self.facts.fault == "stall":
                await asyncio.Event().wait()
            self.work.tokens += 1
            yield pages.word(number)

    async def work_off(self, number: int, seconds: float) -> None:
        """Do a piece of work whose caller does not wait for it."""
        self.queue.append(number)
        async with self.turn():
            await asyncio.sleep(seconds)
        self.queue.remove(number)

    async def tell(self) -> bool:
        """Say what this does to its cards, when that is another thing than before; returns whether its machine is there."""
        if self._guests is None:
            return True
        running = min(self.work.running / self.facts.slots, 1.0)
        guest = records.me(
            name=self.facts.engine,
            gpus=self.facts.gpus,
            memory=round(self.facts.memory_share * min(self.loaded_share / 0.6, 1.0), 3),
            utilization=round(LEAST_UTILIZATION + (1 - LEAST_UTILIZATION) * running, 2) if running else 0.0,
        )
        if guest != self._told:
            self._guests.write(guest)
            self._told = guest
        return self._guests.is_owned()

    def leave(self) -> None:
        """Free its cards."""
        if self._guests is not None and self._told is not None:
            self._guests.remove(replace(self._told))


def say(line: str) -> None:
    """Write a line of the log, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
