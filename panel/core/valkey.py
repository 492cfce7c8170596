"""The plain client for the few keys that the panel keeps in Valkey by itself (liveness, counters)."""

from functools import cache

import redis
from django.conf import settings


@cache
def valkey() -> redis.Redis:
    """Return this process's client. It gives up after a second, so that nothing hangs on a Valkey that is away."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=1.0,
        socket_connect_timeout=1.0,
        decode_responses=True,
        health_check_interval=30,
    )
