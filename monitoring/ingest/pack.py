"""Rows for COPY in Postgres' binary format, built for many rows at once.

A row's layout depends only on which of its columns are null. Rows are grouped by that mask; each mask has a cached
template with all lengths in place, into which the values of all its rows are written in one step, a word each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER: Final = b"\xff\xff"
_EPOCH_2000_US: Final = 946_684_800_000_000
_NULL: Final = b"\xff\xff\xff\xff"

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The template of one mask, and which of its 4-byte words behind the head take the values of which columns."""

    head: Bytes
    words: NDArray[np.uint32]
    columns: NDArray[np.intp]
    positions: NDArray[np.intp]


_SUBJECT: Final = slice(6, 10)
_AT: Final = slice(14, 22)
_HEAD_BYTES: Final = 22


@lru_cache(maxsize=1024)
def _layout(width: int, mask: bytes) -> _Layout:
    """Lay out a row of subject_id, at and `width` 4-byte columns, of which those with a bit in `mask` are null."""
    head = (width + 2).to_bytes(2, "big") + b"\0\0\0\4" + bytes(4) + b"\0\0\0\10" + bytes(8)
    is_null = np.unpackbits(np.frombuffer(mask, dtype=np.uint8), count=width)
    words = bytearray()
    positions: list[int] = []
    for null in is_null:
        if null:
            words += _NULL
            continue
        words += b"\0\0\0\4"
        positions.append(len(words) // 4)
        words += bytes(4)
    return _Layout(
        np.frombuffer(head, dtype=np.uint8),
        np.frombuffer(bytes(words), dtype=np.uint32),
        np.flatnonzero(is_null == 0),
        np.array(positions, dtype=np.intp),
    )


def pack(
    subjects: NDArray[np.int32],
    at_ms: NDArray[np.int64],
    values: NDArray[np.float32],
    reasons: NDArray[np.int32] | None,
) -> bytes:
    """Return a whole COPY stream: subject_id int4, at timestamptz, the values as float4 (NaN is null), the reasons as int4.

    values: (rows × metrics). reasons: below 0 is null; None when the table has no such column. Rows may come in any order
    out, which no reader depends on.
    """
    rows, metrics = values.shape
    width = metrics if reasons is None else metrics + 1
    cells = np.empty((rows, width), dtype=np.uint32)
    cells[:, :metrics] = values.astype(">f4").view(np.uint32)
    is_null = np.empty((rows, width), dtype=np.bool_)
    np.isnan(values, out=is_null[:, :metrics])
    if reasons is not None:
        cells[:, metrics] = reasons.astype(">i4").view(np.uint32)
        np.less(reasons, 0, out=is_null[:, metrics])
    heads = subjects.astype(">i4").view(np.uint8).reshape(-1, 4)
    times = (at_ms * 1000 - _EPOCH_2000_US).astype(">i8").view(np.uint8).reshape(-1, 8)
    parts = [HEADER]
    for mask, chosen in _by_mask(is_null):
        parts.append(_rows(_layout(width, mask), heads[chosen], times[chosen], cells[chosen]))
    parts.append(TRAILER)
    return b"".join(parts)


def _by_mask(is_null: NDArray[np.bool_]) -> Iterator[tuple[bytes, slice | NDArray[np.intp]]]:
    """Yield each mask that occurs, one bit a column, and its rows; most groups of reports have but one."""
    if not len(is_null):
        return
    if (is_null == is_null[0]).all():
        yield np.packbits(is_null[0]).tobytes(), slice(None)
        return
    packed = np.packbits(is_null, axis=1)
    masks, which = np.unique(packed, axis=0, return_inverse=True)
    for number, mask in enumerate(masks):
        yield mask.tobytes(), np.flatnonzero(which.reshape(-1) == number)


def _rows(layout: _Layout, heads: Bytes, times: Bytes, cells: NDArray[np.uint32]) -> bytes:
    """Return rows of one layout."""
    words = np.empty((len(cells), len(layout.words)), dtype=np.uint32)
    words[:] = layout.words
    words[:, layout.positions] = cells if cells.shape[1] == len(layout.columns) else cells[:, layout.columns]
    out = np.empty((len(cells), _HEAD_BYTES + words.shape[1] * 4), dtype=np.uint8)
    out[:, :_HEAD_BYTES] = layout.head
    out[:, _SUBJECT] = heads
    out[:, _AT] = times
    out[:, _HEAD_BYTES:] = words.view(np.uint8)
    return out.tobytes()
