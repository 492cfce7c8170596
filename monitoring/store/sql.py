"""Queries whose answers are arrays, read into numpy without a Python object for each value."""

import weakref
from typing import Any, Final

import numpy as np
import psycopg
from django.db import connection
from psycopg import adapt, pq
from psycopg.abc import Buffer

EPOCH_2000_MS: Final = 946_684_800_000
_HEADER_BYTES: Final = 20


class _ArrayLoader(adapt.Loader):
    """Reads a one-dimensional array without nulls of a fixed-size type from the binary format."""

    format = pq.Format.BINARY
    element: np.dtype[Any]

    def load(self, data: Buffer) -> np.ndarray[Any, Any]:
        """Return the elements in the machine's byte order; an empty array for none."""
        pair = np.dtype([("length", ">i4"), ("value", self.element)])
        offset = min(_HEADER_BYTES, len(data))
        values = np.frombuffer(data, dtype=pair, offset=offset)["value"]
        return values.astype(self.element.newbyteorder("="))


class _Singles(_ArrayLoader):
    element = np.dtype(">f4")


class _Integers(_ArrayLoader):
    element = np.dtype(">i4")


class _Times(_ArrayLoader):
    """Timestamps as Unix milliseconds."""

    element = np.dtype(">i8")

    def load(self, data: Buffer) -> np.ndarray[Any, Any]:
        return super().load(data) // 1000 + EPOCH_2000_MS


PREPARE_AFTER: Final = (
    2  # of the same query on a connection; planning one over all partitions costs more than running it
)
_ready: Final["weakref.WeakSet[psycopg.Connection[Any]]"] = weakref.WeakSet()
_LOADERS: Final = ((1021, _Singles), (1007, _Integers), (1185, _Times))


def _make_ready(raw: "psycopg.Connection[Any]") -> None:
    """Set one connection up for `fetch_row`. Django's own cursors neither prepare nor read binary answers: nothing changes."""
    for oid, loader in _LOADERS:
        raw.adapters.register_loader(oid, loader)
    raw.prepare_threshold = PREPARE_AFTER
    _ready.add(raw)


def fetch_row(query: str, parameters: dict[str, Any]) -> tuple[Any, ...]:
    """Run a query that answers one row; real[], integer[] and timestamptz[] come as numpy arrays (times in Unix ms).

    The arrays must be without nulls. Runs on Django's connection, so it takes part in its transactions and query counts.
    """
    connection.ensure_connection()
    if connection.connection not in _ready:
        _make_ready(connection.connection)
    cursor = psycopg.Cursor(
        connection.connection
    )  # Django's own binds parameters itself, which excludes binary answers
    cursor.format = pq.Format.BINARY
    wrap = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    with wrap(cursor) as wrapper:  # type: ignore[arg-type]  # the stubs know only cursors made by Django
        wrapper.execute(query, parameters)
        row: tuple[Any, ...] = wrapper.fetchone()
        return row
