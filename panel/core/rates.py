"""Counting of attempts in Valkey: fixed windows, shared by all processes."""

import hashlib
import time
from dataclasses import dataclass

from django.core.cache import cache


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` attempts within `period_seconds`."""

    limit: int
    period_seconds: int


def digest(text: str) -> str:
    """Return a short hash, so that names and addresses do not stand in the cache."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).hexdigest()


def _key(scope: str, subject: str, rate: Rate, at: float) -> str:
    """Name the counter of one window."""
    return f"rate:{scope}:{digest(subject)}:{int(at // rate.period_seconds)}"


def count_attempt(scope: str, subject: str, rate: Rate) -> float | None:
    """Count one attempt; return None while within the rate, else the seconds until the next window begins.

    Raises redis.RedisError when Valkey does not answer: the caller decides what that means.
    """
    at = time.time()
    key = _key(scope, subject, rate, at)
    cache.add(key, 0, timeout=rate.period_seconds + 1)
    try:
        count = cache.incr(key)
    except ValueError:  # it ran out between the two calls
        cache.set(key, 1, timeout=rate.period_seconds + 1)
        count = 1
    if count <= rate.limit:
        return None
    return rate.period_seconds - at % rate.period_seconds


def refund_attempt(scope: str, subject: str, rate: Rate) -> None:
    """Take back one attempt that turned out well."""
    key = _key(scope, subject, rate, time.time())
    if cache.get(key, 0) > 0:
        cache.decr(key)
