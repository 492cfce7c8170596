"""One engine's metrics page, fetched once in each report interval: what it tells, or why it tells nothing, in a code."""

import time
from dataclasses import dataclass
from typing import Final, Literal

import httpx

from fleet.agent import clock
from fleet.agent.engines import checks
from fleet.agent.engines.crew import Crew, Task
from fleet.agent.engines.exposed.ledger import EngineLedger
from fleet.agent.engines.exposed.page import MAX_BYTES
from fleet.agent.engines.exposed.reading import EngineMetrics, read_metrics
from fleet.agent.orders import ReplicaOrder

PAGE_SECONDS: Final = 10.0
# Why nothing is told: no page is known of; it is not there (metrics are off); it asks for a key; nobody answers in time; it is
# larger than any engine's; what it holds is no engine's.
Problem = Literal["", "no_page", "off", "refused", "unanswered", "too_large", "unknown"]


@dataclass(frozen=True, slots=True)
class Scrape:
    """One look. found: None with a problem. at: when the page was asked for."""

    found: EngineMetrics | None
    problem: Problem
    at: clock.Moment


def scrape(http: httpx.Client, order: ReplicaOrder, timeout_seconds: float = PAGE_SECONDS) -> Scrape:
    """Fetch and read an engine's page, bounded in time and size whatever it sends."""
    at = clock.now()
    if not order.metrics_path:
        return Scrape(None, "no_page", at)
    deadline = time.monotonic() + timeout_seconds
    url = checks.url_of(order, order.metrics_path, order.metrics_port)
    headers = {"Authorization": f"Bearer {order.upstream_key}"} if order.upstream_key else {}
    timeout = httpx.Timeout(timeout_seconds, connect=checks.CONNECT_SECONDS)
    try:
        with http.stream("GET", url, headers=headers, timeout=timeout) as response:
            if response.status_code != 200:
                return Scrape(None, "refused" if response.status_code in {401, 403} else "off", at)
            text = _text(response, deadline)
    except (httpx.HTTPError, httpx.InvalidURL):
        return Scrape(None, "unanswered", at)
    if text is None:
        return Scrape(None, "too_large", at)
    found = read_metrics(text, kind=order.engine)
    return Scrape(found, "" if found is not None else "unknown", at)


def _text(response: httpx.Response, deadline: float) -> str | None:
    """Return a page, None when it is too large. Raises httpx.ReadTimeout after the deadline, also for one that trickles."""
    pieces, size = [], 0
    for piece in response.iter_bytes():
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BYTES:
            return None
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("The page took too long.")
    return b"".join(pieces).decode(errors="replace")


class Scraper:
    """Looks at one replica's page once in each interval of the ledger's reports; `step` never blocks.

    family, missing, broken, problem: of the last look.
    """

    def __init__(self, order: ReplicaOrder, http: httpx.Client, crew: Crew, ledger: EngineLedger) -> None:
        self._order = order
        self._http = http
        self._crew = crew
        self._ledger = ledger
        self._task: Task[Scrape] | None = None
        self._next = 0.0
        self.family = ""
        self.missing: tuple[str, ...] = ()
        self.broken: tuple[str, ...] = ()
        self.problem: Problem = "" if order.metrics_path else "no_page"

    def step(self, now: float, *, own_requests: int) -> bool:
        """Take what was read and have it read again when it is time; says whether something else than numbers changed."""
        is_news = False
        if self._task is not None and self._task.is_done:
            is_news = self._take(self._task.result(), own_requests)
            self._task = None
        if self._task is None and now >= self._next and self._order.metrics_path:
            self._next = now + self._ledger.interval_seconds()
            self._task = self._crew.do(lambda: scrape(self._http, self._order))
        return is_news

    def _take(self, seen: Scrape, own_requests: int) -> bool:
        before = (self.family, self.missing, self.broken, self.problem)
        self.problem = seen.problem
        if seen.found is not None:
            self.family, self.missing, self.broken = seen.found.engine, seen.found.missing, seen.found.broken
            self._ledger.note(self._order.id, seen.found, own_requests=own_requests, at=seen.at)
        return (self.family, self.missing, self.broken, self.problem) != before
