"""Sends what is in the spool, oldest first, and keeps at it for ever: later after each failure, at once after a success."""

import logging
import time
from collections.abc import Callable
from typing import Final

from fleet.agent import wire
from fleet.agent.backoff import Backoff
from fleet.agent.panel import PanelClient, RefusedError, TokenRefusedError, UnreachableError
from fleet.agent.spool import Spool

log = logging.getLogger(__name__)

# One call of `drain` ends after this, so that whoever calls it is not gone for long.
DRAIN_SECONDS: Final = 20.0
UNACKNOWLEDGED_SECONDS: Final = 300.0


class Reporter:
    """Delivers batches to one panel. on_answer: what to do with each answer; on_refused: a batch is lost for good."""

    def __init__(
        self,
        client: PanelClient,
        spool: Spool,
        *,
        on_answer: Callable[[wire.ReportAnswer], None],
        on_refused: Callable[[], None],
    ) -> None:
        self._client = client
        self._spool = spool
        self._on_answer = on_answer
        self._on_refused = on_refused
        self._backoff = Backoff(1.0, 60.0)
        self._revoked_backoff = Backoff(60.0, 600.0)
        self._next_attempt = 0.0
        self._last_success = time.monotonic()
        self._next_complaint = 0.0
        self.last_error = ""
        self.is_token_refused = False

    @property
    def seconds_until_due(self) -> float:
        """How long until sending is worth trying; 0 for now."""
        return max(0.0, self._next_attempt - time.monotonic())

    @property
    def seconds_since_success(self) -> float:
        """How long ago the panel last acknowledged a batch (or this run began)."""
        return time.monotonic() - self._last_success

    def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Send until the spool is empty, something fails, or the time is over; nothing when it is not yet due."""
        deadline = time.monotonic() + seconds
        while self.seconds_until_due == 0.0 and time.monotonic() < deadline:
            waiting = self._spool.oldest()
            if waiting is None:
                return
            entry, body = waiting
            try:
                answer = self._client.report(body)
            except RefusedError as error:
                log.warning("The panel will never take batch %d of %s: %s", entry.seq, entry.boot_id, error)
                self._spool.refuse(entry)
                self._on_refused()
            except TokenRefusedError as error:
                self._token_refused(error)
            except UnreachableError as error:
                self._failed(error)
            else:
                self._spool.done(entry)
                self._succeeded(answer)

    def _succeeded(self, answer: wire.ReportAnswer) -> None:
        if self.last_error:
            log.info("The panel answers again after %.0f s.", self.seconds_since_success)
        self.last_error, self.is_token_refused = "", False
        self._last_success = time.monotonic()
        self._backoff.reset()
        self._revoked_backoff.reset()
        self._on_answer(answer)

    def _failed(self, error: UnreachableError) -> None:
        delay = self._backoff.next_delay()
        if error.retry_after_seconds is not None:
            delay = max(delay, error.retry_after_seconds)
        self._next_attempt = time.monotonic() + delay
        if not self.last_error:
            log.warning("The panel does not answer, batches wait in the spool: %s", error)
        self.last_error = str(error)
        self._complain()

    def _token_refused(self, error: TokenRefusedError) -> None:
        self._next_attempt = time.monotonic() + 60.0 + self._revoked_backoff.next_delay()
        if not self.is_token_refused:
            log.error(
                "The panel refuses this agent's token: %s It was revoked, or the server was retired. This agent keeps its"
                " readings and goes on asking now and then; join again with a new token, or leave.",
                error,
            )
        self.is_token_refused = True
        self.last_error = str(error)

    def _complain(self) -> None:
        """Say now and then that nothing has arrived for minutes although there is something to send."""
        now = time.monotonic()
        if self.seconds_since_success >= UNACKNOWLEDGED_SECONDS and now >= self._next_complaint:
            self._next_complaint = now + UNACKNOWLEDGED_SECONDS
            log.warning(
                "The panel has acknowledged nothing for %.0f min; %d batches wait. Last answer: %s",
                self.seconds_since_success / 60,
                len(self._spool),
                self.last_error,
            )
