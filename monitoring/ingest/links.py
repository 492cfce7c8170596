"""The writer's connections: made when needed, made anew when lost, with longer waits while Postgres is away."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import psycopg
import structlog

from monitoring.ingest import statements
from monitoring.ingest.link import Link

_BACK_OFF_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

log = structlog.get_logger(__name__)

Connect = Callable[[], Awaitable["psycopg.AsyncConnection[Any]"]]


@dataclass(slots=True)
class Lane:
    """Where one group at a time is stored, over a connection of its own."""

    link: Link | None = None

    @property
    def is_connected(self) -> bool:
        """Say whether there is a connection that is not known to be lost."""
        return self.link is not None and not self.link.closed

    async def close(self) -> None:
        """Disconnect."""
        link, self.link = self.link, None
        if link is not None:
            await link.close()


class Links:
    """Connects lanes."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._failures = 0
        self._retry_at = 0.0

    async def of(self, lane: Lane) -> Link:
        """Return the lane's connection, made anew when it was lost. Raises psycopg.OperationalError."""
        if lane.link is not None and not lane.link.closed:
            return lane.link
        if time.monotonic() < self._retry_at:
            raise psycopg.OperationalError("waiting before the next attempt to connect")
        await lane.close()
        link = Link(await self._connect())
        try:
            await link.prepare(statements.ADVANCE)
        except BaseException:
            await link.close()
            raise
        lane.link, self._failures = link, 0
        return link

    def back_off(self, error: psycopg.Error) -> None:
        """Try again only after a while."""
        if time.monotonic() < self._retry_at:
            return
        wait = _BACK_OFF_SECONDS[min(self._failures, len(_BACK_OFF_SECONDS) - 1)]
        self._failures += 1
        self._retry_at = time.monotonic() + wait
        log.warning("ingest.database_unavailable", error=str(error), retry_seconds=wait)
