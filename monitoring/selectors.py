"""Reads of the time-series store: the newest values, and series of any range in a bounded number of points."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from math import isnan

import numpy as np

from monitoring.models import LatestSample
from monitoring.store.tables import GPU, HOST, SubjectKind


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest sample of a subject. at: when it was taken, by the panel's clock; values: every metric of the catalogue."""

    at: datetime
    received_at: datetime
    values: dict[str, float | None]
    clock_event_reasons: int | None
    performance_state: int | None


def latest_for_gpus(*, gpu_ids: Collection[int]) -> dict[int, Latest]:
    """Return the newest sample of each GPU that ever gave one. One query, on the narrow table."""
    return _latest(GPU, gpu_ids)


def latest_for_servers(*, server_ids: Collection[int]) -> dict[int, Latest]:
    """Return the newest sample of each server's host."""
    return _latest(HOST, server_ids)


def _latest(kind: SubjectKind, subject_ids: Collection[int]) -> dict[int, Latest]:
    if not subject_ids:
        return {}
    rows = LatestSample.objects.filter(kind=kind.code, subject_id__in=subject_ids).values_list(
        "subject_id", "at", "received_at", "values", "clock_event_reasons", "performance_state"
    )
    return {
        subject_id: Latest(at, received_at, values_by_name(kind, values), reasons, performance_state)
        for subject_id, at, received_at, values, reasons, performance_state in rows
    }


def values_by_name(kind: SubjectKind, packed: bytes | memoryview) -> dict[str, float | None]:
    """Return stored values by metric; a metric that was added to the catalogue since is None."""
    return dict.fromkeys(kind.columns) | named(kind, np.frombuffer(packed, dtype="<f4").tolist())


def named(kind: SubjectKind, numbers: list[float]) -> dict[str, float | None]:
    """Return one row of the catalogue by metric, None for NaN."""
    return {name: None if isnan(number) else number for name, number in zip(kind.columns, numbers, strict=False)}
