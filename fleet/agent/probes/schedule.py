"""Probes all targets of one place, each at its own moments and never twice at once, until it is cancelled."""

import asyncio
import heapq
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from fleet.agent.probes.gate import Gate
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.result import Outcome, ProbeResult
from fleet.agent.probes.slots import slot_after, slots_between
from fleet.agent.probes.target import Connection, Target
from fleet.agent.probes.vantage import Change, Watch

MOST_TARGETS: Final = 5_000
LONGEST_SLEEP_SECONDS: Final = 5.0  # the wall clock may be set; nothing is later than this because of it
CLOCK_SET_SECONDS: Final = 1.0
log = logging.getLogger(__name__)

Sink = Callable[[ProbeResult], None]
OnChange = Callable[[Change, Watch], None]


class TooManyTargetsError(ValueError):
    """One process probes so many targets and no more; take several."""


@dataclass(slots=True)
class _Entry:
    target: Target
    due: float
    task: "asyncio.Task[None] | None" = None
    running_since: float | None = None


@dataclass(slots=True)
class Schedule:
    """The loop. sink: gets each result, must return at once. on_change: told when this place goes bad, and when it is back."""

    prober: Prober
    sink: Sink
    on_change: OnChange | None = None
    gate: Gate | None = None
    watch: Watch = field(default_factory=Watch)
    _entries: dict[int, _Entry] = field(default_factory=dict)
    _queue: list[tuple[float, int]] = field(default_factory=list)
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set)
    _latest: float = 0.0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def set_targets(self, targets: Iterable[Target]) -> None:
        """Probe these and no others from now on. One that is unchanged keeps its moments; one that is gone is cancelled; one
        whose `run` changed is due at once, and then at its moments again.

        Raises TooManyTargetsError.
        """
        wanted = {target.id: target for target in targets}
        if len(wanted) > MOST_TARGETS:
            raise TooManyTargetsError(f"{len(wanted)} targets for one process, which probes {MOST_TARGETS} at most")
        gone = set(self._entries) - set(wanted)
        for target_id in gone:
            task = self._entries.pop(target_id).task
            if task:
                task.cancel()
        self.prober.forget(gone)
        for target in wanted.values():
            entry = self._entries.get(target.id)
            if entry is None or entry.target.interval_seconds != target.interval_seconds:
                due = self._due(target, self.prober.wall())
                self._entries[target.id] = _Entry(target, due, *((entry.task, entry.running_since) if entry else ()))
            else:
                if target.run != entry.target.run:
                    entry.due = self.prober.wall()
                entry.target = target
        self._fill_queue()
        self._news.set()

    async def run(self) -> None:
        """Probe until cancelled; then every probe under way is cancelled too, and waited for."""
        try:
            while True:
                await self._wait()
                self._start_what_is_due()
        finally:
            await self._end()

    def _due(self, target: Target, after: float) -> float:
        return slot_after(
            after, target=target.id, vantage=self.prober.vantage, interval_seconds=target.interval_seconds
        )

    async def _wait(self) -> None:
        """Sleep until the next target is due, or the targets change."""
        seconds = LONGEST_SLEEP_SECONDS
        if self._queue:
            seconds = min(max(self._queue[0][0] - self.prober.wall(), 0.0), seconds)
        self._news.clear()
        try:
            await asyncio.wait_for(self._news.wait(), max(seconds, 0.001))
        except asyncio.TimeoutError:  # noqa: UP041  # another class before Python 3.11, which agents run on
            return

    def _start_what_is_due(self) -> None:
        now = self.prober.wall()
        self._notice_clock(now)
        while self._queue and self._queue[0][0] <= now:
            entry = self._entries[heapq.heappop(self._queue)[1]]
            self._begin(entry, now)
            entry.due = self._due(entry.target, now)
            heapq.heappush(self._queue, (entry.due, entry.target.id))

    def _notice_clock(self, now: float) -> None:
        """Place everything anew when the wall clock was set back: else nothing would be due until it is there again."""
        if now < self._latest - CLOCK_SET_SECONDS:
            for entry in self._entries.values():
                entry.due = self._due(entry.target, now)
            self._fill_queue()
        self._latest = now

    def _fill_queue(self) -> None:
        self._queue = [(entry.due, target_id) for target_id, entry in self._entries.items()]
        heapq.heapify(self._queue)

    def _begin(self, entry: _Entry, now: float) -> None:
        missed = slots_between(entry.due, now, entry.target.interval_seconds)
        if missed:
            # Not made up for: everything at once would measure the crowd.
            self._skip(entry, "prober_away", f"{missed} rounds did not take place: this prober did not run")
            return
        if entry.task and not entry.task.done():
            running = time.monotonic() - (entry.running_since or time.monotonic())
            self._skip(entry, "overlap", f"the one before is under way for {running:.1f} s")
            return
        entry.running_since = time.monotonic()
        entry.task = asyncio.get_running_loop().create_task(self._probe(entry.target, entry.due))
        self._tasks.add(entry.task)
        entry.task.add_done_callback(self._tasks.discard)

    async def _probe(self, target: Target, due: float) -> None:
        gate = self.gate = self.gate or Gate()
        connections: tuple[Connection, ...] = target.connections
        for number, connection in enumerate(connections):
            async with gate.through() as leave:
                # The second of a pair begins when the first is over; that is not late.
                scheduled = due if number == 0 else None
                self._take(target, await self.prober.run(target, connection, scheduled=scheduled, on_open=leave))

    def _skip(self, entry: _Entry, reason: str, detail: str) -> None:
        """Record a probe that did not take place: a gap nobody can see would look like good weather."""
        outcome: Outcome = "vantage_down" if reason == "prober_away" else "skipped"
        target, now_ms = entry.target, round(self.prober.wall() * 1000)
        result = ProbeResult(
            target=target.id,
            kind=target.kind,
            vantage=self.prober.vantage,
            connection=target.connections[0],
            scheduled_ms=round(entry.due * 1000),
            started_ms=now_ms,
            outcome=outcome,
            reason=reason,
            detail=detail,
            timeout_ms=target.effective_timeout_seconds * 1000,
        )
        self._hand_on(result)

    def _take(self, target: Target, result: ProbeResult) -> None:
        now = self.prober.wall()
        change = self.watch.take(result, is_control=target.is_control, slow_ms=target.slow_ms, now=now)
        self._hand_on(self.watch.marked(result))
        if change and self.on_change:
            self.on_change(change, self.watch)

    def _hand_on(self, result: ProbeResult) -> None:
        try:
            self.sink(result)
        except Exception:  # the edge: a sink that fails loses its result, and no other probe
            log.exception("probe.result_lost", extra={"target": result.target})

    async def _end(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
