"""Since when the panel can hear its agents: web processes say that they take reports, the watch for silence asks.

Both times are in Valkey, shared by all web processes: while one of several listens, the panel does. Who cannot reach
Postgres stores nothing, and so does not listen.
"""

from datetime import datetime, timedelta
from typing import Final

from django.core.cache import cache
from django.db import connection

NOTE_SECONDS: Final = 1.0
# Between two notes of one listening; an agent that met a shorter pause is back within seconds.
LONGEST_PAUSE: Final = timedelta(seconds=4)
_SEEN_KEY: Final = "fleet:hearing:seen"
_SINCE_KEY: Final = "fleet:hearing:since"


def hearing_note(*, now: datetime) -> None:
    """Say that a report that came now would be stored. Raises DatabaseError when it would not, RedisError without Valkey."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    seen = cache.get(_SEEN_KEY)
    if seen is None or now - seen > LONGEST_PAUSE:
        cache.set(_SINCE_KEY, now, timeout=None)
    cache.set(_SEEN_KEY, now, timeout=None)


def hearing_since(*, now: datetime) -> datetime | None:
    """Return since when the panel has been able to hear its agents without a pause; None when it cannot now."""
    seen: datetime | None = cache.get(_SEEN_KEY)
    if seen is None or now - seen > LONGEST_PAUSE:
        return None
    since: datetime | None = cache.get(_SINCE_KEY)
    return since
