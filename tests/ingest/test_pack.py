"""Packed rows mean to Postgres what they meant to us."""

import numpy as np
import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from monitoring.ingest.arrays import PgArrayDumper, blobs, integers, smallints, times
from monitoring.ingest.pack import pack

COLUMNS = 3
cell = st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6, width=32))


@pytest.mark.django_db
@given(data=st.data(), count=st.integers(0, 20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_packed_rows_are_read_back(data, count):
    subjects = data.draw(npst.arrays(np.int32, count, elements=st.integers(0, 2**31 - 1)))
    at_ms = data.draw(npst.arrays(np.int64, count, elements=st.integers(0, 4_000_000_000_000)))
    values = data.draw(npst.arrays(np.float32, (count, COLUMNS), elements=cell))
    reasons = data.draw(npst.arrays(np.int32, count, elements=st.integers(-1, 2**31 - 1)))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE packed (subject_id int, at timestamptz, a real, b real, c real, reasons int)")
        with cursor.copy("COPY packed FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(pack(subjects, at_ms, values, reasons))
        cursor.execute("SELECT subject_id, (extract(epoch from at) * 1000)::bigint, a, b, c, reasons FROM packed")
        stored = sorted(cursor.fetchall(), key=repr)
        cursor.execute("DROP TABLE packed")
    wanted = [
        (int(s), int(t), *(None if np.isnan(v) else float(v) for v in row), None if r < 0 else int(r))
        for s, t, row, r in zip(subjects, at_ms, values, reasons, strict=True)
    ]
    close = [
        tuple(None if x is None else float(np.float32(x)) if isinstance(x, float) else x for x in row) for row in stored
    ]
    assert close == sorted(wanted, key=repr)


@pytest.mark.django_db
def test_arrays_reach_postgres_as_arrays():
    import psycopg

    numbers = np.array([1, -2, 3])
    connection.ensure_connection()
    cursor = psycopg.Cursor(connection.connection)
    from monitoring.ingest.arrays import PgArray

    cursor.adapters.register_dumper(PgArray, PgArrayDumper)
    row = cursor.execute(
        "SELECT %s::int[], %s::smallint[], (%s::timestamptz[])[1] = '2026-05-10 08:00:00.123+00', %s::bytea[], %s::int[]",
        [
            integers(numbers),
            smallints(numbers),
            times(np.array([1_778_400_000_123], dtype=np.int64)),
            blobs(np.array([[1.0, 2.0], [3.0, 4.0]], dtype="<f4")),
            integers(np.empty(0, dtype=np.int64)),
        ],
    ).fetchone()
    assert row == (
        [1, -2, 3],
        [1, -2, 3],
        True,
        [np.array([1, 2], "<f4").tobytes(), np.array([3, 4], "<f4").tobytes()],
        [],
    )
