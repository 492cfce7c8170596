"""Packed rows mean to Postgres what they meant to us."""

import math
from uuid import UUID

import numpy as np
import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from monitoring.ingest.arrays import bigints, blobs, doubles, integers, smallints, texts, times, uuids
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
    numbers, name = [1, -2, 3], UUID("12345678-1234-5678-1234-567812345678")
    parameters = [
        integers(numbers),
        smallints(np.array(numbers)),
        bigints([2**40]),
        doubles([0.5, math.nan]),
        times(np.array([1_778_400_000_123], dtype=np.int64)),
        blobs(np.array([[1.0, 2.0], [3.0, 4.0]], dtype="<f4")),
        texts(["a", None, "\u00e9", ""]),
        uuids([name]),
        integers([]),
        texts([]),
        blobs(np.empty((0, 2), dtype="<f4")),
    ]
    types = ("int", "smallint", "bigint", "float8", "timestamptz", "bytea", "text", "uuid", "int", "text", "bytea")
    connection.ensure_connection()
    statement = "SELECT " + ", ".join(f"${i}::{name}[]::text" for i, name in enumerate(types, start=1))
    result = connection.connection.pgconn.exec_params(statement.encode(), parameters, param_formats=[1] * len(types))
    assert [result.get_value(0, column).decode() for column in range(len(types))] == [
        "{1,-2,3}",
        "{1,-2,3}",
        "{1099511627776}",
        "{0.5,NaN}",
        '{"2026-05-10 08:00:00.123+00"}',
        '{"\\\\x0000803f00000040","\\\\x0000404000008040"}',
        '{a,NULL,\u00e9,""}',
        f"{{{name}}}",
        "{}",
        "{}",
        "{}",
    ]
