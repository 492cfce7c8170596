"""What other apps add to an agent's assignments: they register it here, because imports run down only."""

from collections.abc import Callable, Mapping
from typing import Any, Final

# Given the id of a server, return fields of `fleet.agent.wire.Assignments` by name.
Part = Callable[[int], Mapping[str, Any]]
_parts: Final[list[Part]] = []


def register_part(part: Part) -> None:
    """Add a part (once, when the app starts)."""
    if part not in _parts:
        _parts.append(part)


def parts_for(server_id: int) -> dict[str, Any]:
    """Return every registered field for a server."""
    return {name: value for part in _parts for name, value in part(server_id).items()}
