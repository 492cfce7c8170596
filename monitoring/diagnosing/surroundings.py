"""What else was so in the minutes of a diagnosis: the engine's cards, its machine's processors, deploys and starts."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import numpy as np

from fleet.models import Gpu
from monitoring.diagnosing.cards import sample_of
from monitoring.diagnosis.evidence import Cause, CpuFacts, GpuSample, Marker
from monitoring.store.progress import CLOSED, progress_of
from monitoring.store.raw import raw_rows
from monitoring.store.sealed import samples_between
from monitoring.store.tables import GPU, HOST, SubjectKind
from panel.core.models import Event

# Readings that are kept with a report; of more every so manieth.
MOST_READINGS: Final = 400
# How long after it is ready a start still explains slowness: caches are empty, graphs are captured.
SETTLE: Final = timedelta(seconds=60)
# A start before the window matters when it ended in it.
BEFORE: Final = timedelta(minutes=60)
_GPU_COLUMNS: Final = (
    "utilization_percent", "power_watts", "sm_activity_percent", "tensor_activity_percent", "dram_activity_percent",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Cards, processors and markers of a window."""

    gpus: tuple[GpuSample, ...] = ()
    cpu: CpuFacts = field(default_factory=CpuFacts)
    markers: tuple[Marker, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as it is kept with a report."""
        return {
            "gpus": [asdict(each) for each in self.gpus],
            "cpu": asdict(self.cpu),
            "markers": [asdict(each) for each in self.markers],
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> "Surroundings":
        """Return what was kept; empty where nothing was."""
        return cls(
            gpus=tuple(msgspec.convert(kept.get("gpus") or [], list[GpuSample])),
            cpu=msgspec.convert(kept.get("cpu") or {}, CpuFacts),
            markers=tuple(msgspec.convert(kept.get("markers") or [], list[Marker])),
        )


def surroundings(
    *,
    gpu_ids: Collection[int],
    server_ids: Collection[int],
    subject_kind: str,
    subject_id: int,
    start: datetime,
    end: datetime,
) -> Surroundings:
    """Return what was stored of a window. At most eight queries."""
    return Surroundings(
        gpus=tuple(_cards(gpu_ids, start, end)),
        cpu=CpuFacts(all_cores=_processors(server_ids, start, end)),
        markers=tuple(_markers(subject_kind, subject_id, start, end)),
    )


def _cards(gpu_ids: Collection[int], start: datetime, end: datetime) -> list[GpuSample]:
    if not gpu_ids:
        return []
    limits = dict(Gpu.objects.filter(pk__in=gpu_ids).values_list("pk", "power_limit_watts"))
    rows = _rows(GPU, gpu_ids, _GPU_COLUMNS, start, end)
    step = max(len(rows) // MOST_READINGS, 1)
    return [
        sample_of(
            dict(zip(_GPU_COLUMNS, values, strict=True)) | {"clock_event_reasons": None if reasons < 0 else reasons},
            enforced_limit_watts=limits.get(subject),
        )
        for subject, values, reasons in rows[::step]
    ]


def _processors(server_ids: Collection[int], start: datetime, end: datetime) -> float | None:
    """Return the mean share of time in which the processors were busy, of the busiest machine."""
    if not server_ids:
        return None
    found: dict[int, list[float]] = {}
    for subject, (percent,), _reasons in _rows(HOST, server_ids, ("cpu_percent",), start, end):
        if percent is not None:
            found.setdefault(subject, []).append(percent / 100)
    return max((sum(values) / len(values) for values in found.values()), default=None)


Row = tuple[int, list[float | None], int]


def _rows(
    kind: SubjectKind, subject_ids: Collection[int], columns: Sequence[str], start: datetime, end: datetime
) -> list[Row]:
    """Return samples as (subject, values, reasons or -1): of open hours as they came, of closed ones as they are sealed."""
    start_ms, end_ms = (round(moment.timestamp() * 1000) for moment in (start, end))
    closed_ms = progress_of(kind, CLOSED) or 0
    found: list[Row] = []
    if start_ms < closed_ms:
        metrics = [kind.columns.index(column) for column in columns]
        sealed = samples_between(
            kind, subject_ids=subject_ids, start_ms=start_ms, end_ms=min(end_ms, closed_ms), metrics=metrics
        )
        for subject, block in sealed.items():
            found += _listed([subject] * len(block.at_ms), block.values[:, metrics], block.reasons)
    if end_ms > closed_ms:
        rows = raw_rows(
            kind, columns=columns, subject_ids=subject_ids, start_ms=max(start_ms, closed_ms), end_ms=end_ms,
            with_reasons=True,
        )  # fmt: skip
        found += _listed(rows.subjects.tolist(), rows.values, rows.reasons)
    return found


def _listed(subjects: Iterable[int], values: Any, reasons: Any) -> list[Row]:
    table = values.astype(object)
    table[np.isnan(values)] = None
    masks = reasons.tolist() if len(reasons) else [-1] * len(table)
    return list(zip(subjects, table.tolist(), masks, strict=True))


def _markers(subject_kind: str, subject_id: int, start: datetime, end: datetime) -> list[Marker]:
    """Return deploys and starts of replicas that reach into the window, each until it was over and had settled."""
    events = Event.objects.filter(
        subject_kind=subject_kind, subject_id=subject_id, at__gte=start - BEFORE, at__lt=end
    ).order_by("at")
    begun: dict[str, datetime] = {}
    found: list[Marker] = []
    for event in events:
        name, _, what = event.kind.partition(".")
        key = f"replica {event.data.get('replica')}" if name == "replica" else name
        if (name, what) in {("rollout", "started"), ("replica", "placed")}:
            begun.setdefault(key, event.at)
        elif key in begun and (name == "rollout" or what in _REPLICA_ENDS):
            found.append(_marker(key, begun.pop(key), event.at))
    found += [_marker(key, at, end) for key, at in begun.items()]
    return [marker for marker in found if marker.end > start.timestamp()]


_REPLICA_ENDS: Final = frozenset({"ready", "failed", "stopped", "lost"})


def _marker(key: str, begin: datetime, end: datetime) -> Marker:
    cause: Cause = "deploy" if key == "rollout" else "cold_start"
    return Marker(cause, begin.timestamp(), (end + SETTLE).timestamp())
