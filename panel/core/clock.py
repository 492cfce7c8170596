"""The one place that asks what time it is, so that tests can move it."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(tz=UTC)
