"""Query parameters that are arrays, taken from numpy without going through Python objects."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import adapt, pq
from psycopg.abc import Buffer

_EPOCH_2000_US: Final = 946_684_800_000_000


@dataclass(frozen=True, slots=True)
class PgArray:
    """A one-dimensional array without nulls: the element's type in Postgres, and each element's bytes as a row."""

    oid: int
    element_oid: int
    cells: NDArray[np.uint8]


def smallints(values: NDArray[Any]) -> PgArray:
    """Return a smallint[]."""
    return PgArray(1005, 21, values.astype(">i2").view(np.uint8).reshape(-1, 2))


def integers(values: NDArray[Any]) -> PgArray:
    """Return an integer[]."""
    return PgArray(1007, 23, values.astype(">i4").view(np.uint8).reshape(-1, 4))


def times(unix_ms: NDArray[np.int64]) -> PgArray:
    """Return a timestamptz[]."""
    return PgArray(1185, 1184, (unix_ms * 1000 - _EPOCH_2000_US).astype(">i8").view(np.uint8).reshape(-1, 8))


def bigints(values: NDArray[Any]) -> PgArray:
    """Return a bigint[]."""
    return PgArray(1016, 20, values.astype(">i8").view(np.uint8).reshape(-1, 8))


def doubles(values: NDArray[Any]) -> PgArray:
    """Return a float8[]."""
    return PgArray(1022, 701, values.astype(">f8").view(np.uint8).reshape(-1, 8))


def uuids(values: list[UUID]) -> PgArray:
    """Return a uuid[]."""
    return PgArray(2951, 2950, np.frombuffer(b"".join(one.bytes for one in values), dtype=np.uint8).reshape(-1, 16))


def blobs(rows: NDArray[Any]) -> PgArray:
    """Return a bytea[] whose elements are the rows' memory, all of one length."""
    cells = np.ascontiguousarray(rows)
    return PgArray(1001, 17, cells.view(np.uint8).reshape(len(cells), cells.shape[1] * cells.itemsize))


class PgArrayDumper(adapt.Dumper):
    """Writes a PgArray in the binary format of arrays."""

    format = pq.Format.BINARY

    def get_key(self, obj: PgArray, format: adapt.PyFormat) -> Any:  # noqa: A002, ARG002
        """Choose a dumper for each element type."""
        return (PgArray, obj.oid)

    def upgrade(self, obj: PgArray, format: adapt.PyFormat) -> "PgArrayDumper":  # noqa: A002, ARG002
        """Return the dumper of this element type."""
        dumper = type(self)(PgArray)
        dumper.oid = obj.oid
        return dumper

    def dump(self, obj: PgArray) -> Buffer:
        """Return dimensions, flags, element type, length, lower bound; then each element behind its length."""
        count, size = obj.cells.shape
        numbers = (1 if count else 0, 0, obj.element_oid, *((count, 1) if count else ()))
        head = np.array(numbers, dtype=">i4").tobytes()
        body = np.empty((count, 4 + size), dtype=np.uint8)
        body[:, :4] = np.frombuffer(size.to_bytes(4, "big"), dtype=np.uint8)
        body[:, 4:] = obj.cells
        return head + body.tobytes()
