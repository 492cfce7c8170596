"""All children of one panel: started one after another, stopped in the opposite order."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from panel.up.child import Child, ChildSpec, attend, ending, spawn
from panel.up.errors import UpError
from panel.up.leftovers import record
from panel.up.output import Output

LAST_LINES: Final = 12


class Supervisor:
    """Keeps children running and knows how to say what happens."""

    def __init__(self, data_dir: Path) -> None:
        self.logs = data_dir / "logs"
        self.sessions = data_dir / "run" / "sessions.json"
        self.children: list[Child] = []
        self._output = Output("up", self.logs)
        self._helper_pid: int | None = None

    def say(self, text: str) -> None:
        """Tell the person at the terminal what happens."""
        self._output.line(text)

    def start(self, spec: ChildSpec) -> Child:
        """Start a child and keep it running."""
        output = Output(spec.name, self.logs, is_shown=spec.is_shown)
        child = Child(spec, output, say=self.say, started=self._remember)
        self.children.append(child)
        return child

    def _remember(self) -> None:
        pids = [child.pid for child in self.children if child.pid is not None]
        record(self.sessions, [*pids, self._helper_pid] if self._helper_pid else pids)

    async def run_once(self, spec: ChildSpec) -> None:
        """Run a program to its end. Raises UpError with its last lines when it fails."""
        output = Output(spec.name, self.logs, is_shown=spec.is_shown)
        lines: list[str] = []

        def line(text: str) -> None:
            lines.append(text)
            del lines[:-LAST_LINES]
            output.line(text)

        running = await spawn(spec)
        self._helper_pid = running.pid
        self._remember()
        try:
            code = await attend(running, line)
        finally:
            self._helper_pid = None
            output.close()
        if code != 0:
            tail = "" if spec.is_shown("") else "\n" + "\n".join(lines)
            raise UpError(f"{spec.name} {ending(code)}; all it said is in {output.path}.{tail}")

    async def stop(self) -> None:
        """Stop every child, the last one started first, each before the next."""
        while self.children:
            child = self.children[-1]
            if child.pid is not None:
                self.say(f"stopping {child.spec.name}")
            await child.stop()
            self.children.pop()
        self.sessions.unlink(missing_ok=True)

    def kill(self) -> None:
        """End everything at once."""
        for child in reversed(self.children):
            child.kill()

    async def until_ready(
        self, child: Child, check: Callable[[], Awaitable[bool]], *, seconds: float, what: str
    ) -> None:
        """Wait until `check` answers true. Raises UpError when the child keeps ending or the time is over."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not await check():
            if child.restarts >= 3:
                raise UpError(
                    f"{what} does not start: {child.last_line or 'it said nothing'}. "
                    f"All it said is in {self.logs / (child.spec.name + '.log')}."
                )
            if asyncio.get_running_loop().time() > deadline:
                raise UpError(
                    f"{what} did not answer within {seconds:.0f} s. What it said is in "
                    f"{self.logs / (child.spec.name + '.log')}."
                )
            await asyncio.sleep(0.05)
