"""One real agent per simulated server: joined once, run as a process of its own, started again when it ends."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from fleet.simulation.engines.records import Guests
from fleet.simulation.panel import PanelRefusedError, PanelUnreachableError
from fleet.simulation.plan import ServerPlan

AGENT_COMMAND: Final = (sys.executable, "-m", "fleet.simulation.engines.agent")
FIRST_DELAY_SECONDS: Final = 1.0
LONGEST_DELAY_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 7.0
JOIN_SECONDS: Final = 60.0
LOG_BYTES: Final = 4 * 1024 * 1024
# A card of this machine that throws an XID must not be told of as a simulated one.
POLICY: Final = "read_kernel_log = false\n"
PR_SET_PDEATHSIG: Final = 1
PRCTL: Final = getattr(ctypes.CDLL(None), "prctl", None)  # looked up before a fork, where nothing may wait for a lock


class Joining(Protocol):
    """Where an agent joins, and how it comes by what it needs for that; PanelClient is one."""

    url: str

    async def join_token(self, plan: ServerPlan) -> str:
        """Return a one-time token. Raises PanelRefusedError or PanelUnreachableError."""

    async def contract(self, plan: ServerPlan) -> bool:
        """Write down what the server costs; return whether anything was written."""


class AgentRunner:
    """Keeps the agent of one server joined and running.

    directory: keeps the agent's state, its log and, until it is used, the join token. starting: held while an agent
    starts, so that a large fleet does not start all at once. surroundings: what it inherits, by default all of this
    process's environment.
    """

    def __init__(
        self,
        plan: ServerPlan,
        *,
        panel: Joining,
        directory: Path,
        environment: Mapping[str, str],
        starting: asyncio.Semaphore,
        say: Callable[[str], None],
        command: tuple[str, ...] = AGENT_COMMAND,
        surroundings: Mapping[str, str] | None = None,
    ) -> None:
        self.plan = plan
        self.command = command
        self.panel = panel
        self.state_dir = directory / "state"
        self.log_path = directory / "agent.log"
        self.engines = Guests(directory / "engines")
        self.joined_path = directory / "joined"
        self.token_path = directory / "join-token"
        self.environment = {**(os.environ if surroundings is None else surroundings), **environment}
        self.starting = starting
        self.say = say
        self.delay = 0.0
        self.process: asyncio.subprocess.Process | None = None

    async def attend(self) -> None:
        """Join, run, and begin again with back-off whenever something ends; until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._join()
                await self._write_contract()
                await self._run()
            except PanelUnreachableError as error:
                self.say(f"{self.plan.name}: {error}")
            except PanelRefusedError as error:
                self.say(f"{self.plan.name}: {error}")
                self.delay = LONGEST_DELAY_SECONDS
            steady = loop.time() - began >= STEADY_SECONDS
            self.delay = FIRST_DELAY_SECONDS if steady or not self.delay else min(2 * self.delay, LONGEST_DELAY_SECONDS)
            await asyncio.sleep(self.delay)

    async def stop(self) -> None:
        """Ask the agent to end, and make it end when it does not. Its engines end as with a machine that is switched off."""
        try:
            await self._stop()
        finally:
            self.engines.end()

    async def _stop(self) -> None:
        process = self.process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _join(self) -> None:
        with suppress(FileNotFoundError):
            if self.joined_path.read_text().strip() == self.panel.url:
                return
        token = await self._join_token()
        async with self.starting:
            process = await self._spawn(
                *("join", "--panel", self.panel.url, "--token", token, "--name", self.plan.name, "--replace")
            )
            try:
                code = await asyncio.wait_for(process.wait(), JOIN_SECONDS)
            except TimeoutError:
                await self.stop()
                raise PanelUnreachableError("joining took too long") from None
        if code != 0:
            self.token_path.unlink(missing_ok=True)  # it may be used up or too old: the next round asks for a new one
            raise PanelUnreachableError(f"could not join (code {code}); see {self.log_path}")
        self.joined_path.write_text(self.panel.url + "\n")
        self.token_path.unlink(missing_ok=True)
        self.say(f"{self.plan.name}: joined with {len(self.plan.cards)} simulated GPUs ({self.plan.provider})")

    async def _write_contract(self) -> None:
        """Have the panel know what the server costs; a panel that refuses gets a server without a price."""
        try:
            await self.panel.contract(self.plan)
        except PanelRefusedError as error:
            self.say(f"{self.plan.name}: {error}")

    async def _join_token(self) -> str:
        """Return a join token: the one of an earlier start that was not used, or a new one."""
        with suppress(FileNotFoundError):
            return self.token_path.read_text().strip()
        token = await self.panel.join_token(self.plan)
        self.token_path.touch(mode=0o600)
        self.token_path.write_text(token)
        return token

    async def _run(self) -> None:
        async with self.starting:
            process = await self._spawn("run")
            await asyncio.sleep(FIRST_DELAY_SECONDS)  # most of a start's work
        code = await process.wait()
        self.say(f"{self.plan.name}: the agent ended with code {code}; see {self.log_path}")

    async def _spawn(self, *arguments: str) -> asyncio.subprocess.Process:
        self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        policy = self.state_dir / "policy.toml"
        if not policy.exists():
            policy.write_text(POLICY)
        if self.log_path.exists() and self.log_path.stat().st_size > LOG_BYTES:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        with self.log_path.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(*self.command, *arguments, "--state-dir", str(self.state_dir)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                preexec_fn=end_with_parent,  # the only other threads wait for children and hold no lock
            )
        return self.process


def end_with_parent() -> None:
    """Let the kernel end this process when the simulation is killed without a chance to stop it (Linux)."""
    if PRCTL is not None:
        PRCTL(PR_SET_PDEATHSIG, signal.SIGTERM)
