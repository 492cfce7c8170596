"""Celery's in-memory broker, waiting for messages instead of looking for them: tasks start at once and idling is free."""

from typing import Any, Final

from kombu.transport import memory

WAIT_SECONDS: Final = 1.0


class Channel(memory.Channel):
    """A channel whose consumer sleeps until there is a message, a second at a time so that the worker can be stopped."""

    def _get(self, queue: str, timeout: float | None = None) -> Any:  # noqa: ARG002 (kombu's signature)
        return self._queue_for(queue).get(timeout=WAIT_SECONDS)


class Transport(memory.Transport):
    """The transport behind memory:// for a worker with a single queue."""

    Channel = Channel
    polling_interval = None
