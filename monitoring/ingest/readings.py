"""Decoded samples as one array of floats.

A sample has some twenty readings, a report some forty samples: touching each number in Python costs more than all the rest
of a report. So the rows are encoded as msgpack again, which is done in C and gives every number the same eight bytes behind
one marker byte, and numpy reads those bytes in place. That needs all rows of a report to have the same readings present,
as those of like cards have; every marker is compared before a byte is believed, and other reports go number by number.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from monitoring.ingest.body import Timed

_encode: Final = msgspec.msgpack.Encoder().encode
_NIL: Final = 0xC0
_FLOAT: Final = 0xCB
_FLOAT_BYTES: Final = 9


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where everything stands in an encoded row: the markers and what they must be, and each present reading's bytes."""

    markers: NDArray[np.intp]
    expected: NDArray[np.uint8]
    columns: list[int]
    record: np.dtype[np.void]


@lru_cache(maxsize=256)
def _layout(width: int, missing: tuple[int, ...]) -> _Layout:
    """Lay out a row of `width` readings of which these are None."""
    head = _encode((None,) * width)[:-width]
    offsets = list(range(len(head)))
    expected = list(head)
    columns: list[int] = []
    at = len(head)
    for column in range(width):
        offsets.append(at)
        is_missing = column in missing
        expected.append(_NIL if is_missing else _FLOAT)
        if not is_missing:
            columns.append(column)
        at += 1 if is_missing else _FLOAT_BYTES
    values = [offsets[len(head) + column] + 1 for column in columns]
    names = [str(column) for column in columns]
    record = np.dtype({"names": names, "formats": [">f8"] * len(names), "offsets": values, "itemsize": at})
    return _Layout(np.array(offsets), np.array(expected, dtype=np.uint8), columns, record)


def readings_of(reports: Sequence[list[Timed]], width: int) -> NDArray[np.float64]:
    """Return the rows of all reports one below the other, (rows × width), NaN for None."""
    out = np.full((sum(map(len, reports)), width), np.nan)
    alike: defaultdict[tuple[int, ...], list[tuple[int, list[Timed]]]] = defaultdict(list)
    start = 0
    for rows in reports:
        if rows:
            missing = tuple([column for column, reading in enumerate(astuple(rows[0])) if reading is None])
            alike[missing].append((start, rows))
        start += len(rows)
    for missing, members in alike.items():
        for first, rows in _read(members, _layout(width, missing), out):
            _fill(first, rows, out)
    return out


def _read(
    members: list[tuple[int, list[Timed]]], layout: _Layout, out: NDArray[np.float64]
) -> list[tuple[int, list[Timed]]]:
    """Fill in the rows of reports whose first rows have the same readings present; returns those that are not so regular."""
    size = layout.record.itemsize
    odd: list[tuple[int, list[Timed]]] = []
    regular: list[tuple[int, list[Timed]]] = []
    parts: list[bytes] = []
    for start, rows in members:
        encoded = _encode(rows)
        head = _array_head_bytes(len(rows))
        if len(encoded) == head + len(rows) * size:
            regular.append((start, rows))
            parts.append(encoded[head:])
        else:
            odd.append((start, rows))
    if not regular:
        return odd
    cells = np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, size)
    if not (cells[:, layout.markers] == layout.expected).all():
        return members
    places = np.concatenate([np.arange(start, start + len(rows)) for start, rows in regular])
    whole = places if len(places) < len(out) else slice(None)
    records = cells.view(layout.record)[:, 0]
    for name, column in zip(layout.record.names or (), layout.columns, strict=True):
        out[whole, column] = records[name]
    return odd


def _array_head_bytes(count: int) -> int:
    """Return how many bytes msgpack puts before an array's elements."""
    return 1 if count < 16 else 3 if count < 65_536 else 5


def _fill(start: int, rows: list[Timed], out: NDArray[np.float64]) -> None:
    """Fill in the rows of one report number by number."""
    numbers = [math.nan if reading is None else reading for row in rows for reading in astuple(row)]
    out[start : start + len(rows)] = np.array(numbers).reshape(len(rows), -1)
