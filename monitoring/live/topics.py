"""Which topics exist, who may see one, and what its snapshot holds: a registry that apps fill when they start."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from panel.core.errors import NotFound
from panel.core.live import LiveData

if TYPE_CHECKING:
    from panel.accounts.models import User


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of topic.

    authorize(user, id) -> bool: may this person see it (synchronous, may query; False too when it does not exist).
    snapshot(id) -> data: everything a page needs at once. watches(id) -> the server looked at, if any.
    interval_seconds: the least time between two frames; what arrives within it is merged. has_id: `kind.<id>`; the id
    of a topic without one is 0.
    """

    kind: str
    authorize: Callable[["User", int], bool]
    snapshot: Callable[[int], LiveData]
    watches: Callable[[int], int | None] = lambda _id: None
    interval_seconds: float = 0.2
    has_id: bool = True


_registry: dict[str, Topic] = {}


def register(topic: Topic) -> None:
    """Add a kind; each may be added once."""
    if topic.kind in _registry:
        raise ValueError(f"live topic {topic.kind!r} is registered twice")
    _registry[topic.kind] = topic


def registered() -> dict[str, Topic]:
    """Return every kind by its name."""
    return dict(_registry)


def resolve(name: object) -> tuple[Topic, int]:
    """Return the kind and id of a topic's name as a browser sent it. Raises NotFound for anything else."""
    if isinstance(name, str) and len(name) <= 64 and name.isascii():
        kind, _, identifier = name.partition(".")
        topic = _registry.get(kind)
        if topic is not None and not topic.has_id and not identifier:
            return topic, 0
        if topic is not None and topic.has_id and identifier.isdecimal() and identifier == str(int(identifier)):
            return topic, int(identifier)
    raise NotFound("There is no such live topic.", code="unknown_topic")
