"""Places in Valkey: at most so many at once, over all processes. A process that dies leaves a place that runs out."""

import contextlib
import time
from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import structlog
from redis.exceptions import RedisError

from panel.core.valkey import valkey

PREFIX: Final = "fleetdeck:places:"
# Take a place in every set, or in none. KEYS: the sets; ARGV: now, until, token, then one limit for each set.
_TAKE: Final = """
for i, key in ipairs(KEYS) do
    redis.call('ZREMRANGEBYSCORE', key, '-inf', ARGV[1])
    if redis.call('ZCARD', key) >= tonumber(ARGV[3 + i]) then return 0 end
end
for _, key in ipairs(KEYS) do
    redis.call('ZADD', key, ARGV[2], ARGV[3])
    redis.call('EXPIRE', key, 3600)
end
return 1
"""

log = structlog.get_logger(__name__)


@contextlib.contextmanager
def place(limits: dict[str, int], *, seconds: float) -> Iterator[bool]:
    """Hold a place under every name for at most `seconds`; yields whether there was one. limits: name → places in all.

    Without Valkey there is always one: what is limited goes on, unlimited.
    """
    keys, token, at = [PREFIX + name for name in limits], uuid4().hex, time.time()
    try:
        is_taken = bool(valkey().eval(_TAKE, len(keys), *keys, at, at + seconds, token, *limits.values()))
    except RedisError as error:
        log.warning("places.unknown", error=str(error))
        yield True
        return
    try:
        yield is_taken
    finally:
        if is_taken:
            with contextlib.suppress(RedisError):
                pipeline = valkey().pipeline()
                for key in keys:
                    pipeline.zrem(key, token)
                pipeline.execute()


def places_taken(name: str) -> int:
    """Return how many places of a name are taken now; 0 without Valkey."""
    try:
        return int(valkey().zcount(PREFIX + name, time.time(), "+inf"))
    except RedisError as error:
        log.warning("places.unknown", error=str(error))
        return 0
