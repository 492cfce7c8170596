"""How one replica stands, as it is kept on disk and told to the panel."""

import logging
from typing import TYPE_CHECKING, Final

from fleet.agent.engines.desk import Desk
from fleet.agent.engines.logs import LogReader
from fleet.agent.engines.record import Record
from fleet.agent.engines.redaction import Redactor
from fleet.agent.engines.sight import Sight
from fleet.agent.orders import ReplicaState, ReplicaStatus

if TYPE_CHECKING:
    from fleet.agent.engines.health import Word
    from fleet.agent.engines.watch import Watch

log = logging.getLogger(__name__)

DETAIL: Final = 500


class Told:
    """percent: of a pull. word: how the engine is. sight: what is seen of it. reader: of its log."""

    def __init__(self, desk: Desk, record: Record) -> None:
        self._desk = desk
        self.percent: int | None = None
        self.word: Word = ""
        self.sight = Sight(desk)
        self._watch: Watch | None = None
        self._begin_record(record)

    def _begin_record(self, record: Record) -> None:
        order = record.order
        self.record = record
        self._redact = Redactor(order)
        self.reader = LogReader(self._desk.book.log_of(order), order.id, order.generation, self._redact)

    def status(self) -> ReplicaStatus:
        """Return what is to be told of it."""
        record, now, look = self.record, self._desk.now(), self.sight.look
        counters = self._watch.fresh(now) if self._watch is not None else None
        scraper = self._watch.scraper if self._watch is not None else None
        return ReplicaStatus(
            id=record.order.id,
            generation=record.order.generation,
            state=record.state,
            health=self.word if record.state != "stopped" else "",
            reason=record.reason[:32],
            detail=record.detail,
            since_ms=record.since_ms,
            percent=self.percent,
            restarts=record.restarts,
            exit_code=record.exit_code,
            handle=look.handle[:100] if look is not None and look.ended is None else "",
            image_id=record.image_id[:200],
            running=counters.running if counters else None,
            waiting=counters.waiting if counters else None,
            kv_cache_percent=counters.kv_cache_percent if counters else None,
            answered_ms=self._watch.answered_ms if self._watch is not None else None,
            metrics_family=scraper.family if scraper is not None else "",
            metrics_missing=list(scraper.missing) if scraper is not None else [],
            metrics_broken=list(scraper.broken) if scraper is not None else [],
            metrics_problem=scraper.problem if scraper is not None else "",
        )

    def _say(self, state: ReplicaState, reason: str = "", detail: str = "", *, is_news: bool = False) -> None:
        """Keep and tell how it stands, if that is news."""
        record = self.record
        detail = self._redact(detail)[:DETAIL]
        is_other = (state, reason) != (record.state, record.reason)
        if is_other:
            record.since_ms = self._desk.now_ms()
            log.info(
                "Replica %s of %s is %s. %s",
                record.order.id,
                record.order.endpoint,
                state,
                f"{reason} {detail}".strip(),
            )
        if not is_other and detail == record.detail and not is_news and state != "pulling":
            return
        record.state, record.reason, record.detail = state, reason, detail
        if is_other:
            self.keep()
        self._desk.changed()

    def keep(self) -> None:
        """Write down what is known; a disk that refuses costs the memory of a restart, not the engine."""
        try:
            self._desk.book.keep(self.record)
        except OSError as error:
            log.warning("What is known of replica %s cannot be kept: %s", self.record.order.id, error)
