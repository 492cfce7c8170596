"""Live frames of what was just committed: at once for servers that somebody looks at, the whole fleet once a second.

Best effort and off the path of the answer: only the newest sample of a subject counts, and a frame that could not be sent
is replaced by the next.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from monitoring.ingest.batch import Batch, Samples, Segment
from monitoring.ingest.writer import Committed
from monitoring.live.frames import SUMMARY_METRICS
from monitoring.selectors import named
from monitoring.store.tables import GPU
from panel.core.live import LiveData, apublish, watched_servers

FRESH_MS: Final = 60_000  # older samples come out of a spool and would move live numbers backwards
FLEET_SECONDS: Final = 1.0
WATCH_SECONDS: Final = 2.0

Entry = dict[str, Any]
log = structlog.get_logger(__name__)


def entry_of(samples: Samples, row: int, segment: Segment) -> Entry:
    """Return one sample as it stands in frames: time, every metric of the catalogue, and a card's state and reasons."""
    entry: Entry = {"at": datetime.fromtimestamp(samples.at_ms[row] / 1000, tz=UTC).isoformat()}
    if samples.kind is GPU:
        reasons, performance_state = int(samples.reasons[row]), int(samples.performance_states[row])
        entry |= {
            "state": segment.state,
            "state_reason": segment.reason,
            "clock_event_reasons": reasons if reasons >= 0 else None,
            "performance_state": performance_state if performance_state >= 0 else None,
        }
    entry |= named(samples.kind, samples.values[row].tolist())
    return entry


class Publisher:
    """Collects entries and sends them from tasks of its own. `watched`: the servers somebody looks at."""

    def __init__(self) -> None:
        self.watched: frozenset[int] = frozenset()
        self._frames: dict[str, LiveData] = {}
        self._fleet: dict[str, Entry] = {}
        self._wake = asyncio.Event()
        loops = (self._send_frames(), self._send_fleet(), self._watch())
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    def committed(self, batches: list[Batch], committed: Committed) -> None:
        """Take what a group stored; returns at once."""
        fresh_ms = time.time() * 1000 - FRESH_MS
        for samples in (committed.gpu, committed.host):
            segments = {
                (number, segment.subject_id): segment
                for number, batch in enumerate(batches)
                if committed.stored[number]
                for segment in batch.segments(samples.kind)
            }
            for row in samples.newest[samples.at_ms[samples.newest] >= fresh_ms].tolist():
                number = int(samples.owners[row])
                segment = segments.get((number, int(samples.subjects[row])))
                if segment is not None:
                    self._collect(samples, row, segment, batches[number].identity.server_id)
        if self._frames:
            self._wake.set()

    def _collect(self, samples: Samples, row: int, segment: Segment, server_id: int) -> None:
        subject = str(segment.subject_id)
        if samples.kind is GPU:
            self._fleet[subject] = {"samples": samples, "row": row, "segment": segment}
        if server_id not in self.watched:
            return
        entry = entry_of(samples, row, segment)
        section = "gpus" if samples.kind is GPU else "host"
        self._frames.setdefault(f"server.{server_id}", {}).setdefault(section, {})[subject] = entry
        if samples.kind is GPU:
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
                entries = {subject: _summary(**parts) for subject, parts in newest.items()}
                await apublish("fleet", {"gpus": entries})

    async def _watch(self) -> None:
        while True:
            self.watched = await asyncio.to_thread(watched_servers)
            await asyncio.sleep(WATCH_SECONDS)

    async def close(self) -> None:
        """Stop; what was not sent is not sent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _summary(samples: Samples, row: int, segment: Segment) -> Entry:
    """Return the few numbers that lists of the whole fleet show."""
    entry = entry_of(samples, row, segment)
    return {name: entry[name] for name in ("at", "state", *SUMMARY_METRICS)}
