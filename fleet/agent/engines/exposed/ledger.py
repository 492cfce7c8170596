"""What all engines of this machine told since the last report, kept until it is cut into one."""

import threading
from collections.abc import Callable
from typing import Final

from fleet.agent import clock, wire, wire_engines
from fleet.agent.engines.exposed.growth import Growths
from fleet.agent.engines.exposed.reading import EngineMetrics

# Histograms are told once a minute: enough for charts, and a tenth of the rows.
HISTOGRAM_MS: Final = 60_000


class _Pending:
    """What is to be told of one replica."""

    def __init__(self) -> None:
        self.samples: list[wire_engines.EngineSample] = []
        self.previous: wire_engines.EngineSample | None = None
        self.growths = Growths()
        self.histograms: list[wire_engines.EngineHistogram] = []
        self.told_at_ms: int | None = None


class EngineLedger:
    """Threads may note and cut at once. Without reports being cut memory stays bounded: the oldest goes.

    interval_seconds: gives how often reports are sent, and so how often pages are read.
    """

    def __init__(self, interval_seconds: Callable[[], float] = lambda: 10.0) -> None:
        self.interval_seconds = interval_seconds
        self._lock = threading.Lock()
        self._pending: dict[int, _Pending] = {}

    def note(self, replica: int, found: EngineMetrics, *, own_requests: int, at: clock.Moment) -> None:
        """Take one look at a replica's page. own_requests: how many this agent has sent it."""
        sample = wire_engines.EngineSample(
            at.at_ms,
            at.monotonic_ms,
            found.running,
            found.waiting,
            found.kv_cache_usage_percent,
            found.preemptions_total,
            found.prompt_tokens_total,
            found.generation_tokens_total,
            found.requests_total,
            float(own_requests),
        )
        with self._lock:
            if len(self._pending) >= wire.LIMITS["engines"] and replica not in self._pending:
                return
            pending = self._pending.setdefault(replica, _Pending())
            pending.samples.append(sample)
            del pending.samples[: -wire.LIMITS["samples_per_engine"]]
            pending.growths.add(found)
            minute = at.monotonic_ms // HISTOGRAM_MS
            if pending.told_at_ms is not None and pending.told_at_ms // HISTOGRAM_MS != minute:
                pending.histograms += pending.growths.take(at.at_ms, at.monotonic_ms)
                del pending.histograms[: -wire.LIMITS["histograms_per_engine"]]
            if pending.told_at_ms is None or pending.told_at_ms // HISTOGRAM_MS != minute:
                pending.told_at_ms = at.monotonic_ms

    def forget(self, replica: int) -> None:
        """Drop what is known of a replica whose run is over; what it told before is still reported."""
        with self._lock:
            pending = self._pending.get(replica)
            if pending is not None:
                moment = clock.now()
                pending.histograms += pending.growths.take(moment.at_ms, moment.monotonic_ms)
                pending.growths, pending.previous, pending.told_at_ms = Growths(), None, None
                if not pending.samples and not pending.histograms:
                    del self._pending[replica]

    def cut(self) -> tuple[list[wire_engines.Engine], list[wire_engines.EngineSample]]:
        """Return what is to be told, by replica, and the samples of all of them in that order."""
        engines: list[wire_engines.Engine] = []
        rows: list[wire_engines.EngineSample] = []
        with self._lock:
            for replica, pending in list(self._pending.items()):
                mine = pending.samples
                if not mine and not pending.histograms:
                    continue
                before = [pending.previous] if pending.previous is not None and mine else []
                rows += [*before, *mine]
                engines.append(wire_engines.Engine(replica, len(before) + len(mine), bool(before), pending.histograms))
                if mine:
                    pending.previous = mine[-1]
                pending.samples, pending.histograms = [], []
                if pending.told_at_ms is None:
                    del self._pending[replica]
        return engines, rows
