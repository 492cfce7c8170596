"""Series that threshold rules can watch: the newest value of every subject, as arrays. Apps above may add kinds and series."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.utils.functional import Promise
from numpy.typing import NDArray

from monitoring.models import LatestSample
from monitoring.store.tables import KINDS, SubjectKind


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest values of one series. ids ascending; at: Unix seconds; values: NaN where there is none."""

    ids: NDArray[np.int64]
    at: NDArray[np.float64]
    values: NDArray[np.float64]


NOTHING: Final = Newest(np.empty(0, np.int64), np.empty(0), np.empty(0))


@dataclass(frozen=True, slots=True)
class Derived:
    """A series made of others. metrics: what it is made of, of the store; read(ids, values by metric) -> values."""

    kind: str
    name: str
    unit: str
    metrics: tuple[str, ...]
    read: Callable[[NDArray[np.int64], dict[str, NDArray[np.float64]]], NDArray[np.float64]]
    title: str | Promise = ""


_derived: Final[dict[str, Derived]] = {}


def register_series(series: Derived) -> None:
    """Add a derived series, named `kind.name`."""
    _derived[f"{series.kind}.{series.name}"] = series


def series_known() -> dict[str, str]:
    """Return the unit of every series by its name."""
    stored = {f"{kind.name}.{metric.name}": metric.unit for kind in KINDS for metric in kind.metrics}
    return {**stored, **{name: each.unit for name, each in _derived.items()}}


class NewestValues:
    """The newest values of a round: one query for each kind, however many series."""

    def __init__(self) -> None:
        self._tables: dict[str, tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float32]]] = {}
        self._series: dict[str, Newest] = {}

    def of(self, series: str) -> Newest:
        """Return the newest values of a series; nothing for one that does not exist (any more)."""
        if series not in self._series:
            self._series[series] = self._read(series)
        return self._series[series]

    def _read(self, series: str) -> Newest:
        kind_name, _, metric = series.partition(".")
        kind = next((each for each in KINDS if each.name == kind_name), None)
        if kind is None or series not in series_known():
            return NOTHING
        ids, at, table = self._table(kind)
        derived = _derived.get(series)
        if derived is None:
            return Newest(ids, at, table[:, kind.columns.index(metric)].astype(np.float64))
        parts = {name: table[:, kind.columns.index(name)].astype(np.float64) for name in derived.metrics}
        return Newest(ids, at, derived.read(ids, parts))

    def _table(self, kind: SubjectKind) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float32]]:
        if kind.name not in self._tables:
            rows = list(
                LatestSample.objects.filter(kind=kind.code)
                .values_list("subject_id", "at", "values")
                .order_by("subject_id")
            )
            width = len(kind.columns)
            absent = np.full(width, np.nan, dtype="<f4").tobytes()
            joined = b"".join(bytes(row[2])[: len(absent)] + absent[len(row[2]) :] for row in rows)
            self._tables[kind.name] = (
                np.array([row[0] for row in rows], dtype=np.int64),
                np.array([row[1].timestamp() for row in rows], dtype=np.float64),
                np.frombuffer(joined, dtype="<f4").reshape(len(rows), width),
            )
        return self._tables[kind.name]
