"""The samples of one report as arrays, one block a kind, whichever form they came in."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleet.agent import wire
from monitoring.ingest.body import ENGINE_FIELDS, HOST_FIELDS, SAMPLE_FIELDS, QuickReport, Timed
from monitoring.ingest.readings import readings_of
from monitoring.ingest.refusals import Refused

MAX_MS: Final = 1e14  # the year 5138
_FLOAT_BYTES: Final = 8
_TIMES: Final = 2


@dataclass(slots=True)
class Block:
    """Readings of one kind, (fields × rows), NaN for None: subject after subject, of each the oldest first.

    lengths: how many rows each subject has; has_previous: its first row only serves rates. subjects: their ids, and states:
    state and reason of each, once the inventory has told them.
    """

    readings: NDArray[np.float64]
    lengths: list[int]
    has_previous: list[bool]
    subjects: list[int] = field(default_factory=list)
    states: list[tuple[str, str]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many readings there are."""
        return sum(self.lengths)

    def only(self, known: Collection[int]) -> "Block | None":
        """Return the rows of these subjects alone, None when there are none."""
        is_kept = [subject in known for subject in self.subjects]
        if all(is_kept):
            return self
        if not any(is_kept):
            return None
        rows = np.repeat(is_kept, self.lengths)
        return Block(
            self.readings[:, rows],
            list(compress(self.lengths, is_kept)),
            list(compress(self.has_previous, is_kept)),
            list(compress(self.subjects, is_kept)),
            list(compress(self.states, is_kept)),
        )

    def newest(self) -> tuple[float, float]:
        """Return wall and monotonic time of the newest reading, by the monotonic clock."""
        at_ms, monotonic_ms = self.readings[0], self.readings[1]
        last = monotonic_ms.argmax()
        return at_ms[last].item(), monotonic_ms[last].item()


def gpu_block(report: QuickReport) -> Block | None:
    """Return the cards' samples, None for none. Raises Refused (400) for columns that do not hold what the cards say."""
    if report.gpu_columns is None:
        if any(gpu.rows for gpu in report.gpus):
            raise _broken("cards have rows, but gpu_columns is missing")
        return _of_rows(
            [_with_previous(gpu.samples, gpu.previous) for gpu in report.gpus if gpu.samples], SAMPLE_FIELDS
        )
    lengths: list[int] = []
    has_previous: list[bool] = []
    for gpu in report.gpus:
        if gpu.samples or gpu.previous is not None:
            raise _broken("samples came both as rows and as columns")
        if gpu.rows:
            lengths.append(gpu.rows)
            has_previous.append(gpu.has_previous)
    if sum(lengths) != report.gpu_columns.rows:
        raise _broken("the cards' rows are not those of gpu_columns")
    return Block(_of_columns(report.gpu_columns, SAMPLE_FIELDS), lengths, has_previous)


def host_block(report: QuickReport) -> Block | None:
    """Return the host's samples, likewise."""
    if report.host_columns is None:
        rows = _with_previous(report.host_samples, report.host_previous)
        return _of_rows([rows] if report.host_samples else [], HOST_FIELDS)
    if report.host_samples or report.host_previous:
        raise _broken("samples came both as rows and as columns")
    readings = _of_columns(report.host_columns, HOST_FIELDS)
    return Block(readings, [report.host_columns.rows], [report.has_host_previous])


def engine_block(report: QuickReport) -> Block | None:
    """Return the samples of engines with their replicas as subjects, None for none; always columns. Raises Refused (400)."""
    told = [engine for engine in report.engines if engine.rows]
    rows = sum(engine.rows for engine in told)
    if rows != (report.engine_columns.rows if report.engine_columns is not None else 0):
        raise _broken("the engines' rows are not those of engine_columns")
    if report.engine_columns is None:
        return None
    return Block(
        _of_columns(report.engine_columns, ENGINE_FIELDS),
        [engine.rows for engine in told],
        [engine.has_previous for engine in told],
        [engine.replica for engine in told],
        [("", "")] * len(told),
    )


def _with_previous(samples: list[Timed], previous: Timed | None) -> tuple[list[Timed], bool]:
    return (samples, False) if previous is None else ([previous, *samples], True)


def _of_rows(subjects: list[tuple[list[Timed], bool]], fields: int) -> Block | None:
    if not subjects:
        return None
    readings = readings_of([[row for rows, _ in subjects for row in rows]], fields)
    return Block(readings.T, [len(rows) for rows, _ in subjects], [has_previous for _, has_previous in subjects])


def _of_columns(columns: wire.Columns, fields: int) -> NDArray[np.float64]:
    """Return the columns this panel knows, those that are missing filled with NaN. Raises Refused (400)."""
    width, rest = divmod(len(columns.data), columns.rows * _FLOAT_BYTES)
    if rest or width < _TIMES:
        raise _broken("the length of the data is not that of so many rows")
    readings: NDArray[np.float64] = np.frombuffer(columns.data, dtype="<f8").reshape(width, columns.rows)
    times = readings[:_TIMES]
    if not (np.minimum.reduce(times, axis=None) >= 0 and np.maximum.reduce(times, axis=None) <= MAX_MS):  # nor NaN
        raise _broken("a sample has no time")
    if width >= fields:
        return readings[:fields]
    return np.concatenate([readings, np.full((fields - width, columns.rows), np.nan)])


def _broken(what: str) -> Refused:
    return Refused(400, "invalid_report", f"The samples cannot be read: {what}.")
