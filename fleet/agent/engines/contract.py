"""What a runtime is to those who reconcile: processes and containers are started, seen and ended by the same few words."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fleet.agent.orders import ReplicaOrder

Tell = Callable[[int], None]


class StartError(Exception):
    """A replica could not be started; the sentence says why. is_permanent: trying again changes nothing."""

    def __init__(self, reason: str, sentence: str, *, is_permanent: bool = False) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.is_permanent = is_permanent


class UnusableError(Exception):
    """This runtime cannot be used on this machine now; the sentence says why and what to do."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How an engine ended. code and signal: None when nobody saw it. reason: `exited` or `out_of_memory`."""

    code: int | None = None
    signal: int | None = None
    reason: str = "exited"
    detail: str = ""

    @property
    def exit_code(self) -> int | None:
        """As a shell says it: 128 + signal for one that a signal ended."""
        return self.code if self.signal is None else 128 + self.signal

    @property
    def sentence(self) -> str:
        """In words."""
        if self.detail:
            return self.detail
        if self.reason == "out_of_memory":
            return "It was ended because it used more memory than there is for it."
        if self.signal is not None:
            return f"It was ended by signal {self.signal}."
        return f"It ended with status {self.code}."


@dataclass(frozen=True, slots=True)
class Look:
    """What there is of one replica on this machine now. ended: None while it runs. pid: the engine's, as seen from here.

    age_seconds: since its start.
    """

    generation: int
    handle: str
    age_seconds: float
    ended: Exit | None = None
    is_frozen: bool = False
    pid: int | None = None
    image_id: str = ""


class Runtime(Protocol):
    """Everything may block for a while and is called from threads that may wait; nothing not ours is ever touched."""

    def version(self) -> str:
        """Return what people call it. Raises UnusableError."""
        ...

    def prepare(self, order: ReplicaOrder, tell: Tell) -> str:
        """Have at hand what a start needs (the image) and return its id. tell: percent. Raises StartError."""
        ...

    def start(self, order: ReplicaOrder, log: Path) -> None:
        """Start the engine; whatever of ours remains of an earlier run is removed first. Raises StartError."""
        ...

    def look(self, replica: int) -> Look | None:
        """Return what there is, None when nothing of ours is. Raises OSError when that cannot be told."""
        ...

    def end(self, replica: int, *, is_hard: bool) -> None:
        """Ask the engine to end, or (is_hard) end it and all that it started."""
        ...

    def clear(self, replica: int) -> None:
        """Remove what remains of an engine that has ended."""
        ...

    def ours(self) -> list[int]:
        """Return the replicas of which something of ours is here."""
        ...

    def fetch_log(self, replica: int, log: Path) -> None:
        """Add to the log file what the engine said since, if it does not write there by itself."""
        ...
