"""How an engine and the simulated cards know of one another: a small file for each engine, beside the file of the cards."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from fleet.agent.engines.keeper import start_ticks

OWNER: Final = "fleet.json"


class Guest(msgspec.Struct, frozen=True):
    """What one engine does to each of its cards. memory, utilization: shares of 0 to 1. Pid and start time name the process."""

    pid: int
    ticks: int
    name: str = ""
    gpus: list[str] = []
    memory: float = 0.0
    utilization: float = 0.0

    @property
    def is_there(self) -> bool:
        """Whether the process is still the one that wrote this."""
        return self.ticks != 0 and start_ticks(self.pid) == self.ticks


def me(**facts: object) -> Guest:
    """Return a record of this process."""
    return msgspec.convert({"pid": os.getpid(), "ticks": start_ticks(os.getpid()) or 0, **facts}, Guest)


class Guests:
    """The records of one simulated server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def own(self) -> None:
        """Say that this process moves the cards: engines end when it has gone, as they would with their machine."""
        self.write(me(), OWNER)

    def is_owned(self) -> bool:
        """Say whether the cards are still moved by somebody; a folder that nobody ever took has no one to miss."""
        owner = self._read(self.folder / OWNER)
        return owner is None or owner.is_there

    def write(self, guest: Guest, name: str = "") -> None:
        """Put down a record; a reader sees the old one or the new one."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / (name or f"{guest.pid}.json")
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(guest))
        new.replace(path)

    def remove(self, guest: Guest) -> None:
        """Take a record away."""
        (self.folder / f"{guest.pid}.json").unlink(missing_ok=True)

    def present(self) -> list[Guest]:
        """Return the engines that run, and forget the others."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            guest = self._read(path) if path.name != OWNER else None
            if guest is not None and guest.is_there:
                found.append(guest)
            elif path.name != OWNER:
                path.unlink(missing_ok=True)
        return found

    def end(self) -> None:
        """End every engine, as switching a machine off does."""
        for guest in self.present():
            with suppress(ProcessLookupError):
                os.kill(guest.pid, signal.SIGKILL)
            self.remove(guest)

    def by_card(self) -> dict[str, list[Guest]]:
        """Return the engines that run by the UUIDs of their cards."""
        cards: dict[str, list[Guest]] = {}
        for guest in self.present():
            for uuid in guest.gpus:
                cards.setdefault(uuid, []).append(guest)
        return cards

    def _read(self, path: Path) -> Guest | None:
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(path.read_bytes(), type=Guest)
        return None
