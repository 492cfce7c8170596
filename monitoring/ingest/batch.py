"""A checked report on its way to the store, and many of them laid side by side as arrays."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from fleet.services.agents import AgentIdentity
from monitoring.ingest.blocks import Block
from monitoring.ingest.clock import SampleClock
from monitoring.ingest.derive import engine_metrics, gpu_metrics, host_metrics
from monitoring.ingest.growths import Growth
from monitoring.store.tables import ENGINE, GPU, HOST, SubjectKind

_WALL: Final = 0
_MONOTONIC: Final = 1


@dataclass(slots=True)
class Batch:
    """One report that passed every check. `done` is set to whether it was stored (False: it already had been).

    growths: what engines' histograms grew by. endpoints: of the replicas in `engines`, the endpoint of each.
    """

    identity: AgentIdentity
    boot_id: UUID
    seq: int
    received_ms: float
    clock: SampleClock
    address: str | None
    version: str
    spooled_batches: int
    lost_samples: int
    gpus: Block | None
    host: Block | None
    engines: Block | None = None
    growths: list[Growth] = field(default_factory=list)
    endpoints: Mapping[int, int] = field(default_factory=dict)
    done: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def block(self, kind: SubjectKind) -> Block | None:
        """Return the readings of one kind."""
        return self.gpus if kind is GPU else self.host if kind is HOST else self.engines

    @property
    def rows(self) -> int:
        """How many readings it carries."""
        return sum(block.rows for block in (self.gpus, self.host, self.engines) if block is not None)


@dataclass(frozen=True, slots=True)
class Samples:
    """Rows of one kind from many batches. owners: which batch each came from; newest: the row that is its subject's last.

    reasons and performance_states are -1 where there is none (and for hosts). states: of each row in `newest`, its
    subject's state and why.
    """

    kind: SubjectKind
    subjects: NDArray[np.int32]
    at_ms: NDArray[np.int64]
    values: NDArray[np.float32]
    reasons: NDArray[np.int32]
    performance_states: NDArray[np.int16]
    owners: NDArray[np.intp]
    newest: NDArray[np.intp]
    states: list[tuple[str, str]]

    def of(self, stored: NDArray[np.bool_]) -> "Samples":
        """Return the rows of those batches alone; `newest` is not kept."""
        keep = stored[self.owners]
        return Samples(
            self.kind,
            self.subjects[keep],
            self.at_ms[keep],
            self.values[keep],
            self.reasons[keep],
            self.performance_states[keep],
            self.owners[keep],
            np.empty(0, dtype=np.intp),
            [],
        )


def assemble(kind: SubjectKind, batches: list[Batch], *, oldest_ms: float) -> Samples:
    """Lay the samples of all batches side by side and derive their metrics; samples before `oldest_ms` are left out."""
    found = [(number, block) for number, batch in enumerate(batches) if (block := batch.block(kind)) is not None]
    if not found:
        return _nothing(kind)
    blocks = [block for _, block in found]
    readings = np.concatenate([block.readings for block in blocks], axis=1).T
    lengths = np.array([length for block in blocks for length in block.lengths], dtype=np.intp)
    owners = np.repeat([number for number, _ in found], [block.rows for block in blocks])
    subjects = np.array([subject for block in blocks for subject in block.subjects], dtype=np.int32).repeat(lengths)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    continues = np.ones(len(readings), dtype=np.bool_)
    continues[starts] = False
    values, reasons, performance_states = _metrics(kind, readings, continues)
    at_ms = _panel_times(batches, owners, readings)
    keep = at_ms >= oldest_ms
    keep[starts[[has_previous for block in blocks for has_previous in block.has_previous]]] = False
    rows = np.flatnonzero(keep)
    has_newest = keep[ends - 1]
    return Samples(
        kind,
        subjects[rows],
        at_ms[rows],
        values[rows],
        reasons[rows],
        performance_states[rows],
        owners[rows],
        np.searchsorted(rows, ends[has_newest] - 1),
        list(compress([state for block in blocks for state in block.states], has_newest.tolist())),
    )


@lru_cache
def _nothing(kind: SubjectKind) -> Samples:
    """Return no samples: many reports carry none of a host."""
    whole, places = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.intp)
    values = np.empty((0, len(kind.metrics)), dtype=np.float32)
    return Samples(kind, whole, whole.astype(np.int64), values, whole, whole.astype(np.int16), places, places, [])


def _metrics(
    kind: SubjectKind, readings: NDArray[np.float64], continues: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int16]]:
    """Return metrics, clock event reasons and performance states; of cards alone there are the last two."""
    if kind is GPU:
        return gpu_metrics(readings, continues)
    none = np.full(len(readings), -1, dtype=np.int32)
    values = engine_metrics(readings, continues) if kind is ENGINE else host_metrics(readings, continues)
    return values, none, none.astype(np.int16)


def _panel_times(batches: list[Batch], owners: NDArray[np.intp], readings: NDArray[np.float64]) -> NDArray[np.int64]:
    clocks = [batch.clock for batch in batches]
    at_ms = readings[:, _WALL]
    if any(clock.is_monotonic for clock in clocks):
        at_ms = np.where(np.array([clock.is_monotonic for clock in clocks])[owners], readings[:, _MONOTONIC], at_ms)
    at_ms = at_ms + np.array([clock.offset_ms for clock in clocks])[owners]
    whole: NDArray[np.int64] = np.rint(np.clip(at_ms, 0, 2.0**52)).astype(np.int64)
    return whole
