"""The hub of a process: one channel-layer subscription per topic, frames encoded once, sockets served from memory."""

import asyncio
import os
import time
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import structlog
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from redis import asyncio as aioredis
from redis.exceptions import RedisError

from monitoring.live import counters
from monitoring.live.mailbox import Frame, merge
from monitoring.live.topics import Topic, resolve
from panel.core.live import GROUP_PREFIX, MESSAGE_TYPE, LiveData, mark_watched

CANARY_SECONDS: Final = 2.0
CANARY_TYPE: Final = "live.canary"
WATCH_SECONDS: Final = 10.0
STOP_STEP_SECONDS: Final = 1.0

log = structlog.get_logger(__name__)


class Socket(Protocol):
    """What the hub needs of a consumer."""

    def offer(self, frame: Frame) -> None:
        """Take a frame for sending; must not block."""

    def resync(self, topic: str) -> None:
        """Messages may have been lost: fetch and send a fresh snapshot of `topic`."""


@dataclass(slots=True)
class Subscription:
    """One topic in this process: who listens, what was numbered, what waits for the interval to pass."""

    name: str
    topic: Topic
    identifier: int
    sockets: set[Socket] = field(default_factory=set)
    seq: int = 0
    sent_seq: int = 0
    waiting: LiveData | None = None
    next_at: float = 0.0
    timer: asyncio.TimerHandle | None = None
    server_id: int | None = None
    is_ready: asyncio.Event = field(default_factory=asyncio.Event)


class Hub:
    """Shares what the channel layer brings among this process's sockets.

    Lost messages are noticed by a canary that travels the same way every two seconds and by the run id of Valkey: a
    canary that does not come back, or another run id, makes every socket fetch fresh snapshots.
    """

    def __init__(self) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self.delivered = 0
        self.resyncs = 0
        self._layer: Any = None
        self._channel = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()
        self._canary_sent = 0
        self._canary_seen = 0
        self._run_id = ""
        self._redis: Any = None

    async def start(self) -> None:
        """Open the process's own channel and begin to receive. Safe to call again."""
        async with self._lock:
            if self._tasks:
                return
            self._layer = get_channel_layer()
            self._channel = await self._layer.new_channel()
            await self._layer.group_add(self._canary_group, self._channel)
            loops = (self._receive(), self._canary(), self._watch())
            self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def stop(self) -> None:
        """Stop receiving; sockets keep what they have."""
        tasks, self._tasks = self._tasks, []
        # A cancellation that meets the end of a wait within a library may get lost there: it is said again.
        pending = set(tasks)
        while pending:
            for task in pending:
                task.cancel()
            _done, pending = await asyncio.wait(pending, timeout=STOP_STEP_SECONDS)
        await asyncio.gather(*tasks, return_exceptions=True)
        for subscription in self.subscriptions.values():
            if subscription.timer is not None:
                subscription.timer.cancel()
        self.subscriptions.clear()
        if self._redis is not None:
            await self._redis.aclose()
            self._redis = None

    @property
    def _canary_group(self) -> str:
        return f"{GROUP_PREFIX}canary.{os.getpid()}.{id(self):x}"

    async def join(self, name: str, socket: Socket) -> Subscription:
        """Subscribe `socket` to the topic `name`; returns once the channel layer has confirmed."""
        await self.start()
        subscription = self.subscriptions.get(name)
        if subscription is not None:
            subscription.sockets.add(socket)
            await subscription.is_ready.wait()
            return subscription
        topic, identifier = resolve(name)
        subscription = Subscription(name, topic, identifier, sockets={socket})
        self.subscriptions[name] = subscription
        try:
            await self._layer.group_add(GROUP_PREFIX + name, self._channel)
            subscription.server_id = await database_sync_to_async(topic.watches)(identifier)
            await self._mark([subscription])
        finally:
            subscription.is_ready.set()
        return subscription

    async def leave(self, name: str, socket: Socket) -> None:
        """End the subscription of `socket`; the last one closes the channel-layer subscription."""
        subscription = self.subscriptions.get(name)
        if subscription is None:
            return
        subscription.sockets.discard(socket)
        if subscription.sockets:
            return
        del self.subscriptions[name]
        if subscription.timer is not None:
            subscription.timer.cancel()
        await self._layer.group_discard(GROUP_PREFIX + name, self._channel)
        if name in self.subscriptions:  # somebody joined while the layer was asked
            await self._layer.group_add(GROUP_PREFIX + name, self._channel)

    async def _receive(self) -> None:
        while True:
            message = await self._layer.receive(self._channel)
            if message["type"] == MESSAGE_TYPE:
                self._arrived(message["topic"], message["data"])
            elif message["type"] == CANARY_TYPE:
                self._canary_seen = message["number"]

    def _arrived(self, name: str, data: LiveData) -> None:
        subscription = self.subscriptions.get(name)
        if subscription is None:
            return
        subscription.seq += 1
        if subscription.waiting is None:
            subscription.waiting = data
        else:
            merge(subscription.waiting, data)
        if subscription.timer is None:
            delay = subscription.next_at - time.monotonic()
            if delay <= 0:
                self._flush(subscription)
            else:
                subscription.timer = asyncio.get_running_loop().call_later(delay, self._flush, subscription)

    def _flush(self, subscription: Subscription) -> None:
        data, subscription.waiting, subscription.timer = subscription.waiting, None, None
        if data is None:
            return
        subscription.next_at = time.monotonic() + subscription.topic.interval_seconds
        frame = Frame("delta", subscription.name, subscription.sent_seq + 1, subscription.seq, data)
        subscription.sent_seq = subscription.seq
        self.delivered += len(subscription.sockets)
        for socket in subscription.sockets:
            socket.offer(frame)

    async def _canary(self) -> None:
        while True:
            self._canary_sent += 1
            message = {"type": CANARY_TYPE, "number": self._canary_sent}
            try:
                await self._layer.group_send(self._canary_group, message)
            except (RedisError, OSError) as error:
                log.warning("live.canary_failed", error=str(error))
            await asyncio.sleep(CANARY_SECONDS)
            if self._canary_seen != self._canary_sent or await self._has_restarted():
                self._resync_all()

    async def _has_restarted(self) -> bool:
        """Say whether Valkey is another run than the last time it answered: what was published meanwhile is lost.

        Leaves this process's counters there on the way.
        """
        if self._redis is None:
            self._redis = aioredis.Redis.from_url(settings.REDIS_URL, socket_timeout=1.0, socket_connect_timeout=1.0)
        try:
            run_id = str((await self._redis.info("server"))["run_id"])
            await counters.write(self._redis, self)
        except (RedisError, OSError):
            return False  # the canary tells that it is away
        before, self._run_id = self._run_id, run_id
        return before not in ("", run_id)

    def _resync_all(self) -> None:
        self.resyncs += 1
        log.warning("live.messages_lost", topics=len(self.subscriptions))
        for name, subscription in self.subscriptions.items():
            for socket in subscription.sockets:
                socket.resync(name)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            await self._mark(list(self.subscriptions.values()))

    async def _mark(self, subscriptions: list[Subscription]) -> None:
        watched = {one.server_id for one in subscriptions if one.server_id is not None}
        if watched:
            await sync_to_async(mark_watched)(watched)


_hubs: dict[asyncio.AbstractEventLoop, Hub] = {}


def hub() -> Hub:
    """Return the hub of the running event loop, made when first asked for."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        for closed in [known for known in _hubs if known.is_closed()]:
            del _hubs[closed]
        found = _hubs[loop] = Hub()
    return found
