"""Live topics: what changed, told to every browser that looks at it.

A topic is `<kind>` or `<kind>.<id>` (`fleet`, `server.12`). Data has two levels, section → key → value, and is merged
key by key on its way, the newest value winning: `{"gpus": {"12": {…}}}`. Values are JSON-ready: strings, numbers, None.
Telling is best effort: browsers get a snapshot when they subscribe and after every gap, so a message that Valkey lost
costs a delay and never a wrong page. Publish after the commit (`transaction.on_commit`), never before.
"""

import time
from typing import Any, Final

import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import transaction
from redis.exceptions import RedisError

MESSAGE_TYPE: Final = "live.publish"
GROUP_PREFIX: Final = "live."
WATCHED_KEY: Final = "fleetdeck:watched"
WATCHED_SECONDS: Final = 30
WATCHED_CACHE_SECONDS: Final = 2.0

LiveData = dict[str, dict[str, Any]]
log = structlog.get_logger(__name__)


async def asend_to_group(group: str, message: dict[str, Any]) -> None:
    """Send to every process that listens to a group. Never raises for a broken connection; it is logged."""
    try:
        await get_channel_layer().group_send(group, message)
    except (RedisError, OSError) as error:
        log.warning("live.publish_failed", group=group, error=str(error))


def send_to_group(group: str, message: dict[str, Any]) -> None:
    """Send from synchronous code; see `asend_to_group`."""
    async_to_sync(asend_to_group)(group, message)


async def apublish(topic: str, data: LiveData) -> None:
    """Tell every process that has a subscriber of `topic`; see `asend_to_group`."""
    await asend_to_group(GROUP_PREFIX + topic, {"type": MESSAGE_TYPE, "topic": topic, "data": data})


def publish(topic: str, data: LiveData) -> None:
    """Tell from synchronous code; see `apublish`."""
    async_to_sync(apublish)(topic, data)


class _Later:
    """What a transaction will tell one topic once it commits, merged into one message."""

    def __init__(self, topic: str, data: LiveData) -> None:
        self.topic = topic
        self.data: LiveData = {section: dict(entries) for section, entries in data.items()}

    def merge(self, data: LiveData) -> None:
        """Add to what will be told; of one key the newest value stays."""
        for section, entries in data.items():
            self.data.setdefault(section, {}).update(entries)

    def __call__(self) -> None:
        publish(self.topic, self.data)


def publish_later(topic: str, data: LiveData) -> None:
    """Tell once the transaction commits; all that one transaction tells a topic becomes one message.

    What was told within a savepoint that is rolled back is dropped with it.
    """
    connection = transaction.get_connection()
    savepoints = set(connection.savepoint_ids)
    for sids, later, _robust in connection.run_on_commit:
        if isinstance(later, _Later) and later.topic == topic and sids == savepoints:
            later.merge(data)
            return
    transaction.on_commit(_Later(topic, data))


class Watched:
    """Which servers somebody looks at right now, shared by all processes through one sorted set in Valkey.

    Agents of watched servers sample and report more often. Reads are cached for two seconds.
    """

    def __init__(self) -> None:
        self._read_at = 0.0
        self._servers: frozenset[int] = frozenset()
        self._client: Any = None

    def _redis(self) -> Any:
        if self._client is None:
            import redis

            self._client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1.0, socket_connect_timeout=1.0)
        return self._client

    def mark(self, server_ids: set[int]) -> None:
        """Say that these servers are looked at; lasts 30 s."""
        if not server_ids:
            return
        expires = time.time() + WATCHED_SECONDS
        self._redis().zadd(WATCHED_KEY, {str(server_id): expires for server_id in server_ids})

    def servers(self) -> frozenset[int]:
        """Return the ids of watched servers; the last known ones when Valkey does not answer."""
        if time.monotonic() - self._read_at < WATCHED_CACHE_SECONDS:
            return self._servers
        self._read_at = time.monotonic()
        try:
            now = time.time()
            pipeline = self._redis().pipeline()
            pipeline.zremrangebyscore(WATCHED_KEY, "-inf", now)
            pipeline.zrange(WATCHED_KEY, 0, -1)
            self._servers = frozenset(int(member) for member in pipeline.execute()[1])
        except (RedisError, OSError) as error:
            log.warning("live.watched_unknown", error=str(error))
        return self._servers


_watched = Watched()


def mark_watched(server_ids: set[int]) -> None:
    """Say that somebody looks at these servers; lasts 30 s."""
    try:
        _watched.mark(server_ids)
    except (RedisError, OSError) as error:
        log.warning("live.watch_failed", error=str(error))


def watched_servers() -> frozenset[int]:
    """Return the ids of the servers that somebody looks at (at most two seconds old)."""
    return _watched.servers()
