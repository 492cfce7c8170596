"""Live frames of what was just committed: at once for servers that somebody looks at, the whole fleet once a second.

Best effort and off the path of the answer: only the newest sample of a subject counts, and a frame that could not be sent
is replaced by the next.
"""

import asyncio
import time
from collections import defaultdict
from datetime import UTC, datetime
from itertools import compress, count, repeat
from typing import Any, Final, NamedTuple

import numpy as np
import structlog
from numpy.typing import NDArray

from monitoring.ingest.batch import Batch, Samples
from monitoring.ingest.writer import Committed
from monitoring.live.frames import SUMMARY_METRICS
from monitoring.selectors import named
from monitoring.store.tables import GPU, SubjectKind
from panel.core.live import LiveData, apublish, watched_servers

FRESH_MS: Final = 60_000  # older samples come out of a spool and would move live numbers backwards
FLEET_SECONDS: Final = 1.0
ENGINES_SECTION: Final = "engines"  # of the topic of an endpoint: the newest sample of each replica
WATCH_SECONDS: Final = 2.0

Entry = dict[str, Any]
log = structlog.get_logger(__name__)


class Newest(NamedTuple):
    """The last sample of a subject in a group. Holds nothing of the report it came in, which is long gone when it is told."""

    kind: SubjectKind
    server_id: int
    subject_id: int
    at_ms: int
    values: NDArray[np.float32]
    clock_event_reasons: int
    performance_state: int
    state: str
    state_reason: str


class News:
    """The last samples of many subjects in one group, as arrays: most are overtaken by the next before anybody asks.

    Like `Newest`, it holds nothing of the reports.
    """

    __slots__ = (
        "_at_ms",
        "_kind",
        "_owners",
        "_performance_states",
        "_reasons",
        "_servers",
        "_states",
        "_values",
        "subjects",
    )

    def __init__(self, samples: Samples, servers: list[int], is_news: NDArray[np.bool_]) -> None:
        """servers: of each batch. is_news: one flag for each row in `samples.newest`."""
        rows = samples.newest[is_news]
        self._kind = samples.kind
        self._servers = servers
        self._owners = samples.owners[rows]
        self._at_ms = samples.at_ms[rows]
        self._values = samples.values[rows]
        self._reasons = samples.reasons[rows]
        self._performance_states = samples.performance_states[rows]
        self._states = list(compress(samples.states, is_news.tolist()))
        self.subjects: list[int] = samples.subjects[rows].tolist()

    def server_id(self, place: int) -> int:
        """Return the server of the subject at this place."""
        return self._servers[int(self._owners[place])]

    def newest(self, place: int) -> Newest:
        """Return the last sample of the subject at this place in `subjects`."""
        return Newest(
            self._kind,
            self.server_id(place),
            self.subjects[place],
            self._at_ms[place].item(),
            self._values[place],
            self._reasons[place].item(),
            self._performance_states[place].item(),
            *self._states[place],
        )


def entry_of(newest: Newest) -> Entry:
    """Return one sample as it stands in frames: time, every metric of the catalogue, and a card's state and reasons."""
    entry: Entry = {"at": datetime.fromtimestamp(newest.at_ms / 1000, tz=UTC).isoformat()}
    if newest.kind is GPU:
        reasons, performance_state = newest.clock_event_reasons, newest.performance_state
        entry |= {
            "state": newest.state,
            "state_reason": newest.state_reason,
            "clock_event_reasons": reasons if reasons >= 0 else None,
            "performance_state": performance_state if performance_state >= 0 else None,
        }
    entry |= named(newest.kind, newest.values.tolist())
    return entry


class Publisher:
    """Collects entries and sends them from tasks of its own. `watched`: the servers somebody looks at."""

    def __init__(self) -> None:
        self.watched: frozenset[int] = frozenset()
        self._frames: dict[str, LiveData] = {}
        self._fleet: dict[int, tuple[News, int]] = {}
        self._engines: dict[int, tuple[int, News, int]] = {}
        self._wake = asyncio.Event()
        loops = (self._send_frames(), self._send_fleet(), self._watch())
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    def committed(self, batches: list[Batch], committed: Committed) -> None:
        """Take what a group stored; returns at once."""
        fresh_ms = time.time() * 1000 - FRESH_MS
        is_stored = np.array(committed.stored)
        servers = [batch.identity.server_id for batch in batches]
        for samples in (committed.gpu, committed.host):
            rows = samples.newest
            if not len(rows):
                continue
            news = News(samples, servers, (samples.at_ms[rows] >= fresh_ms) & is_stored[samples.owners[rows]])
            if samples.kind is GPU:
                self._fleet.update(zip(news.subjects, zip(repeat(news), count()), strict=False))
            if not self.watched.isdisjoint(servers):
                self._collect(news)
        self._collect_engines(batches, committed.engine, servers, is_stored, fresh_ms)
        if self._frames:
            self._wake.set()

    def _collect_engines(
        self, batches: list[Batch], samples: Samples, servers: list[int], is_stored: NDArray[np.bool_], fresh_ms: float
    ) -> None:
        rows = samples.newest
        if not len(rows):
            return
        endpoints = {replica: endpoint for batch in batches for replica, endpoint in batch.endpoints.items()}
        news = News(samples, servers, (samples.at_ms[rows] >= fresh_ms) & is_stored[samples.owners[rows]])
        for place, replica in enumerate(news.subjects):
            self._engines[replica] = (endpoints[replica], news, place)

    def _collect(self, news: News) -> None:
        """Keep the whole entries of servers that somebody looks at, for the next frames."""
        for place in range(len(news.subjects)):
            if news.server_id(place) not in self.watched:
                continue
            one = news.newest(place)
            entry, subject, is_gpu = entry_of(one), str(one.subject_id), one.kind is GPU
            sections = self._frames.setdefault(f"server.{one.server_id}", {})
            sections.setdefault("gpus" if is_gpu else "host", {})[subject] = entry
            if is_gpu:
                self._frames[f"gpu.{subject}"] = {"gpus": {subject: entry}}

    async def _send_frames(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            frames, self._frames = self._frames, {}
            for topic, data in frames.items():
                await apublish(topic, data)

    async def _send_fleet(self) -> None:
        while True:
            await asyncio.sleep(FLEET_SECONDS)
            newest, self._fleet = self._fleet, {}
            if newest:
                entries = {str(subject): _summary(news.newest(place)) for subject, (news, place) in newest.items()}
                await apublish("fleet", {"gpus": entries})
            await self._send_engines()

    async def _send_engines(self) -> None:
        told, self._engines = self._engines, {}
        frames: defaultdict[int, dict[str, Entry]] = defaultdict(dict)
        for replica, (endpoint, news, place) in told.items():
            frames[endpoint][str(replica)] = entry_of(news.newest(place))
        for endpoint, entries in frames.items():
            await apublish(f"endpoint.{endpoint}", {ENGINES_SECTION: entries})

    async def _watch(self) -> None:
        while True:
            self.watched = await asyncio.to_thread(watched_servers)
            await asyncio.sleep(WATCH_SECONDS)

    async def close(self) -> None:
        """Stop; what was not sent is not sent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _summary(newest: Newest) -> Entry:
    """Return the few numbers that lists of the whole fleet show."""
    entry = entry_of(newest)
    return {name: entry[name] for name in ("at", "state", *SUMMARY_METRICS)}
