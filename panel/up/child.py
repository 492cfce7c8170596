"""One supervised process: started, its output named and kept, started again with back-off when it ends, stopped in time."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from panel.up.account import Account
from panel.up.errors import UpError
from panel.up.output import Output, shown

LAUNCH: Final = Path(__file__).with_name("launch.py")
FIRST_DELAY_SECONDS: Final = 1.0
LONGEST_DELAY_SECONDS: Final = 30.0
STEADY_SECONDS: Final = 60.0
LONGEST_LINE_BYTES: Final = 64 * 1024
LAST_WORDS_SECONDS: Final = 2.0


def nothing() -> None:
    """Do nothing before a start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """What to run and how to end it. `is_shown` says which lines go to the terminal as well as to the log file.

    stop_signal: asks it to finish. stop_seconds: how long it may take. death_signal: from the kernel, when the
    supervisor itself was killed. account: the user to run as, when not our own. final_codes: with which the process says
    that starting it again is of no use. before_start: run before every start; an UpError from it counts as a failed one.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    death_signal: signal.Signals = signal.SIGTERM
    account: Account | None = None
    final_codes: frozenset[int] = frozenset()
    before_start: Callable[[], object] = nothing
    is_shown: Callable[[str], bool] = shown


def next_delay(previous: float, *, ran_seconds: float) -> float:
    """Return how long to wait before the next start: 1, 2, 4 … 30 s, from the beginning after a steady minute."""
    if ran_seconds >= STEADY_SECONDS or previous == 0:
        return FIRST_DELAY_SECONDS
    return min(max(previous * 2, FIRST_DELAY_SECONDS), LONGEST_DELAY_SECONDS)


def ending(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def kill_group(leader: int) -> None:
    """End a child and whatever it started, at once."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Running:
    """A process and what it says. Its output is a pipe of our own: asyncio's would make `wait` last until every
    grandchild has closed it, too.
    """

    process: asyncio.subprocess.Process
    lines: asyncio.StreamReader
    transport: asyncio.ReadTransport

    @property
    def pid(self) -> int:
        """The process id, which is also that of its group and session."""
        return self.process.pid


async def spawn(spec: ChildSpec) -> Running:
    """Start it in a session of its own: Ctrl-C at the terminal reaches the supervisor alone, which ends all in order."""
    account = f"{spec.account.uid}:{spec.account.gid}" if spec.account else "-"
    launch = (sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), str(int(spec.death_signal)), account)
    reading, writing = os.pipe()
    lines = asyncio.StreamReader(limit=LONGEST_LINE_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(reading, "rb", buffering=0)
    )
    try:
        process = await asyncio.create_subprocess_exec(
            *(*launch, *spec.command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            start_new_session=True,
            cwd=spec.directory,
            env=dict(spec.environment),
        )
    except BaseException:
        transport.close()
        raise
    finally:
        os.close(writing)
    return Running(process, lines, transport)


async def copy_lines(stream: asyncio.StreamReader, line: Callable[[str], None]) -> None:
    """Hand every line of `stream` to `line`; a line that never ends is cut."""
    while True:
        try:
            raw = await stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                line(error.partial.decode(errors="replace"))
            return
        except asyncio.LimitOverrunError as error:
            raw = await stream.read(error.consumed)
        line(raw.decode(errors="replace").rstrip("\r\n"))


async def attend(running: Running, line: Callable[[str], None]) -> int:
    """Copy the output until the process has ended, end what it left behind, and return its exit code."""
    copying = asyncio.create_task(copy_lines(running.lines, line))
    try:
        code = await running.process.wait()
    finally:
        kill_group(running.pid)
        with suppress(TimeoutError):
            await asyncio.wait_for(copying, LAST_WORDS_SECONDS)
        running.transport.close()
    return code


class Child:
    """A process that should run until it is told to stop."""

    def __init__(
        self, spec: ChildSpec, output: Output, *, say: Callable[[str], None], started: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.restarts = 0
        self.last_line = ""
        self._output = output
        self._say = say
        self._started = started
        self._running: Running | None = None
        self._code: int | None = None
        self._stopping = asyncio.Event()
        self._task = asyncio.create_task(self._keep(), name=spec.name)

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._running.pid if self._running and self._running.process.returncode is None else None

    def _line(self, text: str) -> None:
        if text.strip():
            self.last_line = text.strip()
        self._output.line(text)

    async def _keep(self) -> None:
        delay = 0.0
        while not self._stopping.is_set():
            began = time.monotonic()
            what = await self._run()
            if self._stopping.is_set():
                return
            ran = time.monotonic() - began
            delay = next_delay(delay, ran_seconds=ran)
            if self._code in self.spec.final_codes:
                self._say(f"{self.spec.name} {what} and stays off until the next start")
                return
            self.restarts += 1
            self._say(f"{self.spec.name} {what} after {ran:.0f} s; starting it again in {delay:.0f} s")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)

    async def _run(self) -> str:
        """Run it once and say how it ended."""
        self._code = None
        try:
            self.spec.before_start()
            self._running = await spawn(self.spec)
        except UpError as error:
            return f"could not be started ({error})"
        except OSError as error:
            return f"could not be started ({error.strerror})"
        self._started()
        self._code = await attend(self._running, self._line)
        return f"(process {self._running.pid}) {ending(self._code)}"

    async def stop(self) -> None:
        """Ask the process to end, kill it when it takes longer than it may, and return when it is gone."""
        self._stopping.set()
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, self.spec.stop_signal)
            done, _ = await asyncio.wait({self._task}, timeout=self.spec.stop_seconds)
            if not done:
                self._say(f"{self.spec.name} did not end within {self.spec.stop_seconds:.0f} s and is killed")
                self.kill()
        await self._task
        self._output.close()

    def kill(self) -> None:
        """End it at once, with all that it started."""
        self._stopping.set()
        if self.pid is not None:
            kill_group(self.pid)
