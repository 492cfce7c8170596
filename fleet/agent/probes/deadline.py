"""One limit around everything that a probe does."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlineError(Exception):
    """The time is over. Not TimeoutError, which is also what the system says of a connection."""


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns. Raises DeadlineError, after it was cancelled and has cleaned up behind itself."""
    if sys.version_info >= (3, 11):  # noqa: UP036 (the agent, unlike the panel, runs on 3.10)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if limit.expired():
                raise DeadlineError from None
            raise
    else:
        try:
            return await asyncio.wait_for(work, seconds)
        except asyncio.TimeoutError:  # noqa: UP041  # another class before Python 3.11
            raise DeadlineError from None
