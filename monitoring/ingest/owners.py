"""Which replicas an agent may tell of: those of its own server. The app above registers who knows that."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Final

from panel.core.threads import DjangoThreads

CACHE_SECONDS: Final = 15.0
RETRY_SECONDS: Final = 1.0  # so soon may one that is not known be asked for again
MAX_SERVERS: Final = 20_000

# Given a server's id, returns its replicas with the endpoint of each, those that ended within the spool's time included.
Lookup = Callable[[int], Mapping[int, int]]
_lookup: list[Lookup] = []


def register_lookup(lookup: Lookup) -> None:
    """Say who knows the replicas of a server (once, when the app starts)."""
    _lookup[:] = [lookup]


def replicas_of(*, server_id: int) -> Mapping[int, int]:
    """Return a server's replicas with their endpoints; none while nobody knows any."""
    return _lookup[0](server_id) if _lookup else {}


class Owners:
    """What this process knows of each server's replicas, for a few seconds."""

    def __init__(self, threads: DjangoThreads) -> None:
        self._threads = threads
        self._known: OrderedDict[int, tuple[float, Mapping[int, int]]] = OrderedDict()

    async def of(self, server_id: int, named: Collection[int], now: float) -> Mapping[int, int]:
        """Return the replicas of a server that are among the named ones, with their endpoints. now: monotonic seconds."""
        at, known = self._known.get(server_id, (float("-inf"), {}))
        is_old = now - at > CACHE_SECONDS or (now - at > RETRY_SECONDS and not known.keys() >= set(named))
        if is_old:
            known = await self._threads.run(replicas_of, server_id=server_id)
            self._known[server_id] = (now, known)
            self._known.move_to_end(server_id)
            while len(self._known) > MAX_SERVERS:
                self._known.popitem(last=False)
        return {replica: known[replica] for replica in named if replica in known}
