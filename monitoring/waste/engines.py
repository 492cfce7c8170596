"""Which engines work on a card: the apps above know, and say so when they start."""

from collections.abc import Callable, Collection, Mapping

# From cards to the engines that work on them now, by their ids in the store.
EnginesOf = Callable[[Collection[int]], Mapping[int, Collection[int]]]

_lookups: list[EnginesOf] = []


def register_engines(lookup: EnginesOf) -> None:
    """Let an app say which engines work on cards; cards that it does not know are left out of its answer."""
    _lookups.append(lookup)


def engines_of(gpu_ids: Collection[int]) -> dict[int, set[int]]:
    """Return the engines on each card that has any."""
    found: dict[int, set[int]] = {}
    for lookup in _lookups:
        for gpu, engines in lookup(gpu_ids).items():
            found.setdefault(gpu, set()).update(engines)
    return found
