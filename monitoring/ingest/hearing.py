"""Says every second that this process takes reports, so that silence is only held against agents who could be heard."""

import asyncio
from typing import Final

import structlog
from django.db import Error as DatabaseError
from redis.exceptions import RedisError

from fleet.services.hearing import NOTE_SECONDS, hearing_note
from panel.core.clock import now
from panel.core.threads import DjangoThreads

_AWAY: Final = (DatabaseError, RedisError, OSError)

log = structlog.get_logger(__name__)


class Hearing:
    """A task of the event loop; a loop that is stuck, or threads that are, take no reports and say nothing."""

    def __init__(self, threads: DjangoThreads) -> None:
        self._threads = threads
        self._task = asyncio.create_task(self._note())

    async def _note(self) -> None:
        is_away = False
        while True:
            try:
                await self._threads.run(hearing_note, now=now())
                is_away = False
            except _AWAY as error:
                if not is_away:
                    log.warning("ingest.not_listening", error=str(error))
                is_away = True
            await asyncio.sleep(NOTE_SECONDS)

    async def close(self) -> None:
        """Stop; what was said last holds for a few seconds."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
