"""A prober with an event loop and a thread of its own, for processes that are not asynchronous: agents and workers."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from fleet.agent.probes.gate import Gate
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.schedule import OnChange, Schedule, Sink
from fleet.agent.probes.target import Connection, Target

if TYPE_CHECKING:
    import concurrent.futures

STOP_SECONDS: Final = 5.0
Probe = Callable[[Target, Connection], Awaitable[ProbeResult]]


class NotRunningError(RuntimeError):
    """The thread has been stopped or was never started."""


class ProberThread:
    """start() and stop() it; everything else may be called from any thread.

    make: returns the prober, called within the thread. sink, on_change: see Schedule; called within the thread.
    """

    def __init__(self, make: Callable[[], Prober], sink: Sink, on_change: OnChange | None = None) -> None:
        self._make, self._sink, self._on_change = make, sink, on_change
        self._loop: asyncio.AbstractEventLoop | None = None
        self._schedule: Schedule | None = None
        self._main: asyncio.Task[None] | None = None
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._work, name="prober", daemon=True)

    def start(self) -> None:
        """Begin; returns when targets can be given."""
        self._thread.start()
        self._is_up.wait(STOP_SECONDS)

    def stop(self) -> None:
        """End, with every probe under way."""
        if self._loop is not None and self._main is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._main.cancel)
            self._thread.join(STOP_SECONDS)

    def set_targets(self, targets: Iterable[Target]) -> None:
        """Probe these and no others from now on. Raises NotRunningError, TooManyTargetsError."""
        wanted = list(targets)
        loop, schedule = self._running()

        async def change() -> None:
            schedule.set_targets(wanted)

        asyncio.run_coroutine_threadsafe(change(), loop).result(STOP_SECONDS)

    def run(self, target: Target, connection: Connection = "cold") -> ProbeResult:
        """Probe once, now, and wait for it. Raises NotRunningError."""
        return self.submit(target, connection).result()

    def submit(self, target: Target, connection: Connection = "cold") -> "concurrent.futures.Future[ProbeResult]":
        """Probe once, now, beside what is scheduled; the future may be cancelled. Raises NotRunningError."""
        loop, schedule = self._running()
        return asyncio.run_coroutine_threadsafe(_through_gate(schedule, target, connection), loop)

    def begin(self, work: Callable[[Probe], Awaitable[None]]) -> "concurrent.futures.Future[None]":
        """Start work of several probes within the thread; it is given how to probe, each through the gate as all others.

        The future may be cancelled. Raises NotRunningError.
        """
        loop, schedule = self._running()

        async def run() -> None:
            await work(lambda target, connection: _through_gate(schedule, target, connection))

        return asyncio.run_coroutine_threadsafe(run(), loop)

    def _running(self) -> tuple[asyncio.AbstractEventLoop, Schedule]:
        if self._loop is None or self._schedule is None or not self._thread.is_alive():
            raise NotRunningError("this prober does not run")
        return self._loop, self._schedule

    def _work(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with self._make() as prober:
            self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
            self._schedule = Schedule(prober, self._sink, self._on_change)
            self._is_up.set()
            try:
                await self._schedule.run()
            except asyncio.CancelledError:
                return


async def _through_gate(schedule: Schedule, target: Target, connection: Connection) -> ProbeResult:
    gate = schedule.gate = schedule.gate or Gate()
    async with gate.through() as leave:
        return await schedule.prober.run(target, connection, on_open=leave)
