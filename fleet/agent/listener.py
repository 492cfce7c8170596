"""Waits at the panel for the assignments to change, so that what a person asks for begins within a second."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from fleet.agent import wire
from fleet.agent.backoff import Backoff
from fleet.agent.panel import PanelClient, PanelError, TokenRefusedError

WAIT_SECONDS: Final = 25
# A panel (or a proxy before it) that answers at once and with nothing new is asked this seldom.
PATIENCE_SECONDS: Final = 5.0
REFUSED_SECONDS: Final = 300.0
FRESH_SECONDS: Final = 2.0 * WAIT_SECONDS

log = logging.getLogger(__name__)


class Listener:
    """Asks in a thread of its own, which holds up nothing and ends with the process."""

    def __init__(self, client: PanelClient, hear: Callable[[wire.Assignments], None]) -> None:
        self._client = client
        self._hear = hear
        self._have: int | None = None
        self._is_stopping = threading.Event()
        self._backoff = Backoff(1.0, 60.0)
        self._answered_at = float("-inf")
        self._thread = threading.Thread(target=self._listen, name="listener", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Take no answer any more. A request that is out is left to the end of the process."""
        self._is_stopping.set()

    @property
    def is_hearing(self) -> bool:
        """Whether the panel answered here not long ago, so that nobody else need ask."""
        return time.monotonic() - self._answered_at < FRESH_SECONDS

    def _listen(self) -> None:
        while not self._is_stopping.is_set():
            began = time.monotonic()
            try:
                assignments = self._client.assignments(wait_seconds=WAIT_SECONDS, have=self._have)
            except TokenRefusedError:
                self._is_stopping.wait(REFUSED_SECONDS)
            except PanelError as error:
                log.debug("Not heard from the panel: %s", error)
                self._is_stopping.wait(error_delay(error) or self._backoff.next_delay())
            else:
                self._take(assignments, time.monotonic() - began)

    def _take(self, assignments: wire.Assignments, took_seconds: float) -> None:
        if self._is_stopping.is_set():
            return
        self._answered_at = time.monotonic()
        self._backoff.reset()
        is_news = assignments.version != self._have
        self._have = assignments.version
        self._hear(assignments)
        if not is_news and took_seconds < PATIENCE_SECONDS:
            self._is_stopping.wait(PATIENCE_SECONDS)


def error_delay(error: PanelError) -> float | None:
    """Return how long the panel asked to be left alone, if it said so."""
    return getattr(error, "retry_after_seconds", None)
