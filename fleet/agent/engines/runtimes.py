"""The runtimes of a machine, by name, and which of them can be used."""

import time
from collections.abc import Callable
from typing import Final

from fleet.agent.engines.containers import ContainerRuntime
from fleet.agent.engines.contract import Runtime, UnusableError
from fleet.agent.engines.processes import ProcessRuntime
from fleet.agent.engines.record import Book
from fleet.agent.policy import Policy

FRESH_SECONDS: Final = 60.0
# Agents of simulated machines have others (`fleet/simulation/engines`).
MAKERS: Final[dict[str, Callable[[Book, Policy], Runtime]]] = {
    "process": lambda book, policy: ProcessRuntime(book.folder, book.owner(), policy),
    "container": lambda book, policy: ContainerRuntime(book.owner(), policy),
}


class Runtimes:
    """by_name: `container` and `process`."""

    def __init__(self, book: Book, policy: Policy) -> None:
        self.by_name: dict[str, Runtime] = {name: make(book, policy) for name, make in MAKERS.items()}
        self._told: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._told_at = float("-inf")

    def told(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return (usable ones with what people call them, the others with the reason); asks now and then. May block."""
        if time.monotonic() - self._told_at > FRESH_SECONDS:
            usable, unusable = {}, {}
            for name, runtime in self.by_name.items():
                try:
                    usable[name] = runtime.version()[:500]
                except UnusableError as error:
                    unusable[name] = str(error)[:500]
            self._told, self._told_at = (usable, unusable), time.monotonic()
        return self._told
