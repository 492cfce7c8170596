"""Rows for COPY in Postgres' binary format, built for many rows at once.

A row's layout depends only on which of its columns are null. Rows are grouped by that mask; each mask has a cached
template with all lengths in place, into which the values of all its rows are written in one step.
"""

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
    """The template of one mask: where subject, time and the present values stand in it."""

    template: Bytes
    columns: NDArray[np.intp]
    positions: NDArray[np.intp]


_SUBJECT: Final = slice(6, 10)
_AT: Final = slice(14, 22)


@lru_cache(maxsize=1024)
def _layout(width: int, mask: int) -> _Layout:
    """Lay out a row of subject_id, at and `width` 4-byte columns, of which those with a bit in `mask` are null."""
    row = bytearray((width + 2).to_bytes(2, "big") + b"\0\0\0\4" + bytes(4) + b"\0\0\0\10" + bytes(8))
    columns: list[int] = []
    positions: list[int] = []
    for column in range(width):
        if mask >> column & 1:
            row += _NULL
            continue
        row += b"\0\0\0\4"
        columns.append(column)
        positions.extend(range(len(row), len(row) + 4))
        row += bytes(4)
    return _Layout(
        np.frombuffer(bytes(row), dtype=np.uint8), np.array(columns, dtype=np.intp), np.array(positions, dtype=np.intp)
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
    cells = values.astype(">f4").view(np.uint32)
    is_null = np.isnan(values)
    if reasons is not None:
        cells = np.column_stack([cells, reasons.astype(">i4").view(np.uint32)])
        is_null = np.column_stack([is_null, reasons < 0])
    width = cells.shape[1]
    masks = is_null @ (1 << np.arange(width, dtype=np.int64))
    heads = subjects.astype(">i4").view(np.uint8).reshape(-1, 4)
    times = (at_ms * 1000 - _EPOCH_2000_US).astype(">i8").view(np.uint8).reshape(-1, 8)
    parts = [HEADER]
    for mask in np.unique(masks):
        rows = np.flatnonzero(masks == mask)
        layout = _layout(width, int(mask))
        out = np.empty((len(rows), len(layout.template)), dtype=np.uint8)
        out[:] = layout.template
        out[:, _SUBJECT] = heads[rows]
        out[:, _AT] = times[rows]
        if len(layout.columns):
            out[:, layout.positions] = cells[np.ix_(rows, layout.columns)].view(np.uint8).reshape(len(rows), -1)
        parts.append(out.tobytes())
    parts.append(TRAILER)
    return b"".join(parts)
