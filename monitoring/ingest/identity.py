"""Who sends: agent tokens looked up through a short-lived cache, and how often each agent may report."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from fleet.services.agents import AgentIdentity, agent_authenticate
from monitoring.ingest.refusals import Refused
from panel.core.threads import DjangoThreads

CACHE_SECONDS: Final = 5.0  # so long may a revoked token still be taken
MAX_TOKENS: Final = 20_000
_BEARER: Final = b"bearer "


@dataclass(slots=True)
class _Known:
    identity: AgentIdentity | None
    until: float


class Identities:
    """Looks up tokens; each is asked of the database at most once in `CACHE_SECONDS`, however many reports wait for it."""

    def __init__(self, threads: DjangoThreads) -> None:
        self._threads = threads
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[AgentIdentity | None]] = {}

    async def identify(self, authorization: bytes) -> AgentIdentity:
        """Return who presents this header. Raises Refused (401)."""
        if authorization[:7].lower() != _BEARER:
            raise Refused(401, "not_authenticated", "Send the agent's token as Authorization: Bearer.")
        key = hashlib.sha256(authorization[7:]).digest()
        known = self._known.get(key)
        if known is None or known.until < time.monotonic():
            identity = await self._ask(key, authorization[7:].decode("latin-1").strip())
        else:
            identity = known.identity
        if identity is None:
            raise Refused(
                401, "token_refused", "This token is unknown or was revoked, or its server is retired; join again."
            )
        return identity

    def forget(self, authorization: bytes) -> None:
        """Ask the database again at the next report of this token: what it stands for has changed."""
        self._known.pop(hashlib.sha256(authorization[7:]).digest(), None)

    async def _ask(self, key: bytes, token: str) -> AgentIdentity | None:
        task = self._asking.get(key)
        if task is None:
            task = asyncio.ensure_future(self._threads.run(agent_authenticate, token=token))
            self._asking[key] = task
            task.add_done_callback(lambda done: self._learn(key, done))
        return await asyncio.shield(task)

    def _learn(self, key: bytes, done: "asyncio.Task[AgentIdentity | None]") -> None:
        self._asking.pop(key, None)
        if done.cancelled() or done.exception() is not None:
            return
        self._known[key] = _Known(done.result(), time.monotonic() + CACHE_SECONDS)
        self._known.move_to_end(key)
        while len(self._known) > MAX_TOKENS:
            self._known.popitem(last=False)


class RateLimit:
    """A token bucket for each agent: `burst` reports at once, `per_second` in the long run (in this process)."""

    def __init__(self, *, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._buckets: OrderedDict[int, tuple[float, float]] = OrderedDict()

    def take(self, agent_id: int, now: float) -> None:
        """Count one report at `now` (monotonic seconds). Raises Refused (429) that says how long to wait."""
        level, at = self._buckets.get(agent_id, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._per_second)
        if level < 1:
            wait = (1 - level) / self._per_second
            message = f"More than {self._per_second:g} reports a second; wait {wait:.1f} s."
            raise Refused(429, "rate_limited", message, retry_after_seconds=wait)
        self._buckets[agent_id] = (level - 1, now)
        self._buckets.move_to_end(agent_id)
        if len(self._buckets) > MAX_TOKENS:
            self._buckets.popitem(last=False)
