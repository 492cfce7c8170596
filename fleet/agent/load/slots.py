"""Connections as callers have them: as many as requests are under way, each used again when it is free."""

from fleet.agent.probes.target import Connection


class Slots:
    """Numbers for requests under way; the one that was given back last is used first, so that few connections stay open."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._used: set[int] = set()
        self._made = 0

    def take(self) -> tuple[int, Connection]:
        """Return a number, and whether a connection may be open for it."""
        if self._free:
            number = self._free.pop()
        else:
            self._made += 1
            number = self._made
        return number, "warm" if number in self._used else "cold"

    def give(self, number: int, *, is_open: bool) -> None:
        """Give a number back. is_open: its connection can be used again."""
        (self._used.add if is_open else self._used.discard)(number)
        self._free.append(number)
