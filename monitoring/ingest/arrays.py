"""Query parameters that are arrays, in Postgres' binary format, taken from numpy without going through Python objects."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike, NDArray

_EPOCH_2000_US: Final = 946_684_800_000_000
_BYTEA: Final = 17
_TEXT: Final = 25
_UUID: Final = 2950


class _Cells:
    """Elements of one fixed-size type: each behind its length."""

    def __init__(self, oid: int, element: str) -> None:
        value = np.dtype(element)
        self._oid = oid
        self._length = value.itemsize
        self._cell = np.dtype([("length", ">i4"), ("value", value)])

    def __call__(self, values: ArrayLike) -> bytes:
        """Return a one-dimensional array without nulls."""
        count = len(values)  # type: ignore[arg-type]
        cells = np.empty(count, dtype=self._cell)
        cells["length"] = self._length
        cells["value"] = values
        return _head(self._oid, count) + cells.tobytes()


smallints: Final = _Cells(21, ">i2")
integers: Final = _Cells(23, ">i4")
bigints: Final = _Cells(20, ">i8")
doubles: Final = _Cells(701, ">f8")
_moments: Final = _Cells(1184, ">i8")


@lru_cache(maxsize=4096)
def _head(element_oid: int, count: int, *, has_nulls: bool = False) -> bytes:
    """Return dimensions, whether there are nulls, element type, length, lower bound."""
    numbers = (1 if count else 0, int(has_nulls), element_oid, *((count, 1) if count else ()))
    return b"".join([number.to_bytes(4, "big") for number in numbers])


def times(unix_ms: NDArray[np.int64]) -> bytes:
    """Return a timestamptz[]."""
    return _moments(unix_ms * 1000 - _EPOCH_2000_US)


def uuids(values: Sequence[UUID]) -> bytes:
    """Return a uuid[]."""
    length = (16).to_bytes(4, "big")
    return _head(_UUID, len(values)) + b"".join([length + one.bytes for one in values])


def blobs(rows: NDArray[Any]) -> bytes:
    """Return a bytea[] whose elements are the rows' memory, all of one length."""
    count, width = rows.shape
    size = width * rows.itemsize
    cells = np.empty((count, 4 + size), dtype=np.uint8)
    cells[:, :4] = np.frombuffer(size.to_bytes(4, "big"), dtype=np.uint8)
    cells[:, 4:] = np.ascontiguousarray(rows).view(np.uint8).reshape(count, size)
    return _head(_BYTEA, count) + cells.tobytes()


def texts(values: Sequence[str | None]) -> bytes:
    """Return a text[], None being null."""
    parts = [_head(_TEXT, len(values), has_nulls=None in values)]
    for value in values:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            encoded = value.encode()
            parts += (len(encoded).to_bytes(4, "big"), encoded)
    return b"".join(parts)
