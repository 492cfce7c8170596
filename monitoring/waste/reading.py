"""Minutes of cards out of the rollups: one query for cards, one for their machines, one for their engines."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleet.enums import GpuState
from fleet.models import Gpu
from monitoring.cards import interval_seconds
from monitoring.store.rollup_rows import rollup_cells
from monitoring.store.tables import ENGINE, GPU, HOST, HOUR_MS, MINUTE, SubjectKind
from monitoring.waste.engines import engines_of
from monitoring.waste.minutes import WORK_FROM_PERCENT, Minute, Requests

MINUTE_MS: Final = 60_000
_GPU_COLUMNS: Final = (
    "utilization_percent", "sm_activity_percent", "encoder_percent", "decoder_percent", "power_watts", "memory_used_bytes",
)  # fmt: skip
_ENGINE_COLUMNS: Final = ("running", "waiting", "requests_per_second", "own_requests_per_second")
_FAULTY: Final = frozenset({GpuState.LOST, GpuState.MISSING})
# Fewer requests in a minute than this are rounding of a rate.
LEAST_REQUESTS: Final = 0.5
# The agent's own checks are under way for a moment; a request of a caller that fills the minute stands beside them.
RUNNING_THROUGHOUT: Final = 0.5

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Slots:
    """Minutes of many subjects: average and maximum are (subjects × minutes), NaN where nothing was read; count samples."""

    average: Floats
    maximum: Floats
    count: NDArray[np.int64]


def minutes_of(gpus: Sequence[Gpu], *, start: datetime, end: datetime) -> dict[int, list[Minute]]:
    """Return each card's minutes from start to end, both on whole minutes. gpus: with server, agent and processes."""
    first_ms, minutes = _ms(start), (_ms(end) - _ms(start)) // MINUTE_MS
    cards = _slots(GPU, _GPU_COLUMNS, [gpu.pk for gpu in gpus], first_ms, minutes)
    hosts = sorted({gpu.server_id for gpu in gpus})
    processors = _slots(HOST, ("cpu_percent",), hosts, first_ms, minutes)["cpu_percent"].average
    requests = _requests([gpu.pk for gpu in gpus], first_ms, minutes)
    work = np.fmax(cards["utilization_percent"].maximum, cards["sm_activity_percent"].maximum)
    alone = _cpu_of_idle_hosts(gpus, work, dict(zip(hosts, processors, strict=True)))
    media = np.fmax(cards["encoder_percent"].maximum, cards["decoder_percent"].maximum)
    present = np.maximum.reduce([slots.count for slots in cards.values()])
    found: dict[int, list[Minute]] = {}
    for row, gpu in enumerate(gpus):
        share = cards["memory_used_bytes"].maximum[row] / (gpu.memory_total_bytes or np.nan)
        is_seen = gpu.processes_visibility == "visible"
        found[gpu.pk] = [
            Minute(
                present=int(present[row, at]),
                expected=max(int(60 / interval_seconds(gpu.server)), 1),
                work_percent=_known(work[row, at]),
                media_percent=_known(media[row, at]),
                power_watts=_known(cards["power_watts"].average[row, at]),
                memory_share=_known(share[at]),
                processes=len(gpu.processes) if is_seen else None,
                requests=requests[gpu.pk][at] if gpu.pk in requests else None,
                host_cpu_percent=_known(alone[row, at]),
                is_faulty=gpu.state in _FAULTY,
            )
            for at in range(minutes)
        ]
    return found


def _ms(at: datetime) -> int:
    return int(at.timestamp()) * 1000


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _slots(
    kind: SubjectKind, columns: Sequence[str], subject_ids: Sequence[int], first_ms: int, minutes: int
) -> dict[str, Slots]:
    """Return the minutes of each column, rows in the order of `subject_ids`."""
    end_ms = first_ms + minutes * MINUTE_MS
    found = rollup_cells(
        kind, MINUTE, columns=columns, subject_ids=subject_ids, start_ms=first_ms, end_ms=end_ms, until_step=str(MINUTE)
    )
    place = {subject: row for row, subject in enumerate(subject_ids)}
    shape = (len(subject_ids), minutes)
    slots = {name: Slots(np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)) for name in columns}
    for row, subject in enumerate(found.subjects.tolist()):
        offset = (int(found.starts_ms[row]) - first_ms) // MINUTE_MS
        into, source = slice(max(offset, 0), min(offset + HOUR_MS // MINUTE_MS, minutes)), max(-offset, 0)
        for name, cells in zip(columns, found.cells, strict=True):
            _put(slots[name], place[subject], into, cells[row], source)
    return slots


def _put(slots: Slots, row: int, into: slice, cell: np.void, source: int) -> None:
    span = slice(source, source + into.stop - into.start)
    is_some = cell["count"][span] > 0
    slots.average[row, into] = np.where(is_some, cell["average"][span], np.nan)
    slots.maximum[row, into] = np.where(is_some, cell["maximum"][span], np.nan)
    slots.count[row, into] = cell["count"][span]


def _cpu_of_idle_hosts(gpus: Sequence[Gpu], work: Floats, processors: Mapping[int, Floats]) -> Floats:
    """Return each card's host processors, NaN in minutes in which another of the host's cards works."""
    is_working = work >= WORK_FROM_PERCENT
    servers = np.array([gpu.server_id for gpu in gpus])
    found = np.stack([processors[gpu.server_id] for gpu in gpus]) if gpus else np.empty_like(work)
    for server in np.unique(servers):
        rows = np.flatnonzero(servers == server)
        working = is_working[rows].sum(axis=0)
        for row in rows:
            found[row, working - is_working[row] > 0] = np.nan
    return found


def _requests(gpu_ids: Collection[int], first_ms: int, minutes: int) -> dict[int, list[Requests | None]]:
    """Return what the engines of each card were asked, None in minutes in which none of them told."""
    engines = engines_of(gpu_ids)
    subjects = sorted(set().union(*engines.values())) if engines else []
    if not subjects:
        return {}
    slots = _slots(ENGINE, _ENGINE_COLUMNS, subjects, first_ms, minutes)
    place = {subject: row for row, subject in enumerate(subjects)}
    return {gpu: _asked_of(slots, [place[subject] for subject in on_card], minutes) for gpu, on_card in engines.items()}


def _asked_of(slots: Mapping[str, Slots], rows: Sequence[int], minutes: int) -> list[Requests | None]:
    told = slots["running"].count[rows].max(axis=0) > 0
    own = np.nansum(slots["own_requests_per_second"].average[rows], axis=0) * 60
    ended = np.nansum(slots["requests_per_second"].average[rows], axis=0) * 60 - own
    waiting = np.nan_to_num(slots["waiting"].maximum[rows]).max(axis=0)
    running = np.nan_to_num(slots["running"].average[rows]).max(axis=0)
    return [
        Requests(
            running_max=float(running[at]) if running[at] >= RUNNING_THROUGHOUT else 0.0,
            waiting_max=float(waiting[at]),
            finished=float(ended[at]) if ended[at] >= LEAST_REQUESTS else 0.0,
        )
        if told[at]
        else None
        for at in range(minutes)
    ]
