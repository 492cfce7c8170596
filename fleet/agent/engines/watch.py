"""What is seen of one running engine over time: real requests, counters and pages become the evidence for its word."""

import time
from dataclasses import dataclass, replace
from typing import Final

import httpx

from fleet.agent.engines import checks
from fleet.agent.engines.checks import Answer
from fleet.agent.engines.crew import Crew, Task
from fleet.agent.engines.exposed.ledger import EngineLedger
from fleet.agent.engines.exposed.scraping import Scraper
from fleet.agent.engines.health import Evidence, Word, word_for
from fleet.agent.engines.metrics import Counters
from fleet.agent.engines.pace import Pace
from fleet.agent.orders import ReplicaOrder

AFTER_MISS_SECONDS: Final = 2.0
# How long the counters and the real request wait for one another.
TURN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Asked:
    answer: Answer
    after: Counters | None
    health_status: int | None


class Watch:
    """One run of one engine. `step` never blocks; times are monotonic seconds. has_answered: in an earlier run of the agent.

    answered: how many of our own requests it has answered, so that they can be told from load.
    """

    def __init__(
        self,
        order: ReplicaOrder,
        http: httpx.Client,
        crew: Crew,
        pace: Pace,
        *,
        ledger: EngineLedger | None = None,
        has_answered: bool = False,
    ) -> None:
        self.scraper = Scraper(order, http, crew, ledger or EngineLedger())
        self.answered = 0
        self._order = order
        self._http = http
        self._crew = crew
        self._pace = pace
        self._asking: Task[_Asked] | None = None
        self._reading: Task[Counters | None] | None = None
        self._next_ask = self._next_read = self._asked_at = self._read_at = 0.0
        self._last = Answer("answered") if has_answered else None
        self._progress_before: float | None = None
        self._progress: float | None = None
        self._moved_at = time.monotonic()
        self._is_moving: bool | None = None
        self._health_status: int | None = None
        self._misses = 0
        self._is_scrape_news = False
        self.has_answered = has_answered
        self.answered_ms: float | None = None
        self.counters: Counters | None = None
        self.counters_at = float("-inf")

    def step(self, now: float, *, is_serving_wanted: bool = True) -> None:
        """Take in what was learned and have the next thing done. is_serving_wanted: False while it drains: counters only."""
        if self._asking is not None and self._asking.is_done:
            self._learn(self._asking.result(), now)
            self._asking = None
        if self._reading is not None and self._reading.is_done:
            self._count(self._reading.result(), now)
            self._reading = None
        self._is_scrape_news |= self.scraper.step(now, own_requests=self.answered)
        if self._is_read_due(now):
            self._next_read = now + (self._pace.metrics if is_serving_wanted else self._pace.quiet / 2)
            self._read_at = now
            self._reading = self._crew.do(lambda: checks.read_metrics(self._http, self._order))
        if is_serving_wanted and self._is_ask_due(now):
            self._progress_before, self._asked_at = self._progress, now
            self._asking = self._crew.do(self._ask)

    def word(self, now: float, *, is_frozen: bool) -> Word:
        """Return how the engine is."""
        return word_for(self.evidence(now, is_frozen=is_frozen))

    def evidence(self, now: float, *, is_frozen: bool = False) -> Evidence:
        """Return what is known now."""
        counters = self.fresh(now)
        others = self._others(counters)
        is_stuck = others is not None and others > 0.0 and counters is not None and counters.progress is not None
        seen = Evidence(
            is_frozen=is_frozen,
            has_answered=self.has_answered,
            outcome=self._last.outcome if self._last else None,
            misses=self._misses,
            answered_ms=self.answered_ms,
            timeout_seconds=self._order.ready.timeout_seconds,
            is_moving=self._is_moving,
            frozen_seconds=now - self._moved_at if is_stuck else 0.0,
            others=others,
            health_status=self._health_status,
        )
        if counters is None:
            return seen
        return replace(
            seen,
            waiting=counters.waiting,
            kv_cache_percent=counters.kv_cache_percent,
            is_asleep=counters.is_asleep,
        )

    def fresh(self, now: float) -> Counters | None:
        """Return the counters unless they are old."""
        return self.counters if now - self.counters_at < self._pace.stale else None

    def take_news(self) -> bool:
        """Say whether the metrics page tells of other readings than before, once."""
        is_news, self._is_scrape_news = self._is_scrape_news, False
        return is_news

    @property
    def complaint(self) -> str:
        """What was wrong with the last real request, empty when nothing was."""
        return self._last.detail if self._last is not None else ""

    # ---- inside

    def _is_read_due(self, now: float) -> bool:
        """Say whether to read the counters: not while a request of our own would be among them, unless that takes long."""
        is_alone = self._asking is None or now - self._asked_at > TURN_SECONDS
        return checks.has_counters(self._order) and self._reading is None and now >= self._next_read and is_alone

    def _is_ask_due(self, now: float) -> bool:
        """Say whether to send the real request: never to an engine that sleeps, which it would wake."""
        is_alone = self._reading is None or now - self._read_at > TURN_SECONDS
        counters = self.fresh(now)
        is_asleep = counters is not None and counters.is_asleep
        return self._asking is None and now >= self._next_ask and is_alone and not is_asleep

    def _ask(self) -> _Asked:
        limit = self._order.ready.timeout_seconds
        answer = checks.ask(
            self._http, self._order, limit if self.has_answered else max(limit, self._pace.first_answer)
        )
        status = checks.read_health(self._http, self._order) if answer.outcome == "answered" else None
        is_missed = answer.outcome != "answered" and self.has_answered
        after = checks.read_metrics(self._http, self._order, AFTER_MISS_SECONDS) if is_missed else None
        return _Asked(answer, after, status)

    def _learn(self, asked: _Asked, now: float) -> None:
        self._last = asked.answer
        if asked.after is not None:
            self._count(asked.after, now)
        before, after = self._progress_before, self._progress
        self._is_moving = None if before is None or after is None else after != before
        self._health_status = asked.health_status
        if asked.answer.outcome == "answered":
            self.has_answered = True
            self.answered += 1
            self.answered_ms = asked.answer.ms
            self._misses = 0
            self._moved_at = now
            self._next_ask = now + self._pace.check
        else:
            self._misses += 1
            self._next_ask = now + self._pace.recheck

    def _count(self, counters: Counters | None, now: float) -> None:
        if counters is None:
            return
        is_idle = (self._others(counters) or 0.0) <= 0.0
        if counters.progress != self._progress or is_idle:
            self._moved_at = now
        self._progress = counters.progress
        self.counters, self.counters_at = counters, now

    def _others(self, counters: Counters | None) -> float | None:
        """Return the requests in the engine that are not our own: a stuck engine keeps those that we gave up, too."""
        if counters is None or counters.in_flight is None:
            return None
        return max(counters.in_flight - self._misses - (self._asking is not None), 0.0)
