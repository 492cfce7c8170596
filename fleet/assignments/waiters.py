"""Agents that wait for their assignments to change: futures on the event loop, released by what a commit publishes."""

import asyncio
from collections import deque
from typing import Any, Final

import structlog
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

ASSIGNMENTS_GROUP: Final = "fleet.assignments"
ASSIGNMENTS_CHANGED: Final = "fleet.assignments_changed"
# An agent has one request out; a second one is what is left of a connection that broke.
PER_AGENT: Final = 2
PER_PROCESS: Final = 10_000
RETRY_SECONDS: Final = 1.0

Waiter = asyncio.Future[None]
log = structlog.get_logger(__name__)


class FullError(Exception):
    """As many wait in this process as may."""


class Waiters:
    """The waiting agents of this process. A word that Valkey lost costs an agent its time limit, and never the change."""

    def __init__(self, *, per_process: int = PER_PROCESS) -> None:
        self._per_process = per_process
        self._waiting: dict[int, deque[Waiter]] = {}
        self._count = 0
        self._listening: asyncio.Task[None] | None = None
        self._is_heard = asyncio.Event()

    def __len__(self) -> int:
        return self._count

    async def add(self, agent_id: int) -> Waiter:
        """Return a future that is done when the agent's assignments have changed; `remove` it in any case.

        Of one agent's waiters the newest stay: the oldest is released when there are more than PER_AGENT. Raises FullError.
        Read the assignments after this, so that no change falls in between.
        """
        if self._count >= self._per_process:
            raise FullError
        waiter: Waiter = asyncio.get_running_loop().create_future()
        mine = self._waiting.setdefault(agent_id, deque())
        mine.append(waiter)
        self._count += 1
        if len(mine) > PER_AGENT:
            _release(mine[0])
            self.remove(agent_id, mine[0])
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        try:
            await self._is_heard.wait()
        except asyncio.CancelledError:
            self.remove(agent_id, waiter)
            raise
        return waiter

    def remove(self, agent_id: int, waiter: Waiter) -> None:
        """Forget a waiter; one that is forgotten already is fine."""
        mine = self._waiting.get(agent_id)
        if mine is None or waiter not in mine:
            return
        mine.remove(waiter)
        self._count -= 1
        if not mine:
            del self._waiting[agent_id]

    def release(self, agent_id: int) -> None:
        """Release the agent's waiters."""
        for waiter in self._waiting.get(agent_id, ()):
            _release(waiter)

    def release_all(self) -> None:
        """Release everybody."""
        for agent_id in self._waiting:
            self.release(agent_id)

    async def close(self) -> None:
        """Release everybody and stop listening."""
        self.release_all()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        """Hear what commits publish; after a loss of Valkey everybody is released, who may have missed a word."""
        layer: Any = get_channel_layer()
        while True:
            try:
                channel = await layer.new_channel()
                await layer.group_add(ASSIGNMENTS_GROUP, channel)
                self._is_heard.set()
                while True:
                    message = await layer.receive(channel)
                    if message["type"] == ASSIGNMENTS_CHANGED:
                        self.release(message["agent_id"])
            except (RedisError, OSError) as error:
                log.warning("assignments.not_heard", error=str(error))
                self._is_heard.set()  # waits end at their limit meanwhile
                self.release_all()
                await asyncio.sleep(RETRY_SECONDS)


def _release(waiter: Waiter) -> None:
    if not waiter.done():
        waiter.set_result(None)
