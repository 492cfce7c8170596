"""A few threads for the synchronous parts of an asynchronous application, each with its own database connection."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from django.db import close_old_connections, connections

Result = TypeVar("Result")
WORKERS: Final = 3


class DjangoThreads:
    """Runs synchronous Django code off the event loop; `close` gives back the connections."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(WORKERS, thread_name_prefix=name)

    async def run(self, function: Callable[..., Result], **arguments: Any) -> Result:
        """Call the function in a thread; what it raises is raised here."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(_with_connection, function, arguments))

    async def close(self) -> None:
        """Close every thread's connections and end the threads."""
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        meeting = threading.Barrier(WORKERS)  # a job for each thread: none ends before all have begun
        for job in [self._executor.submit(_leave, meeting) for _ in range(WORKERS)]:
            job.result()
        self._executor.shutdown()


def _with_connection(function: Callable[..., Result], arguments: dict[str, Any]) -> Result:
    close_old_connections()
    try:
        return function(**arguments)
    finally:
        close_old_connections()


def _leave(meeting: threading.Barrier) -> None:
    meeting.wait(timeout=30)
    connections.close_all()
