"""Samples put straight into the store's tables, and what must come back."""

import numpy as np
from django.db import connection

from monitoring.ingest.pack import pack
from monitoring.ingest.statements import copy_statement
from monitoring.models import DirtyHour
from monitoring.store.tables import GPU, HOUR_MS

BASE_HOUR = 494_000  # an hour since 1970 that is not special: 2026-05-10 08:00 UTC


def put(subject, at_ms, *, kind=GPU, reasons=None, **metrics):
    """Insert rows; each metric is one number or one for each time, NaN for none."""
    at_ms = np.asarray(at_ms, dtype=np.int64)
    values = np.full((len(at_ms), len(kind.metrics)), np.nan, dtype=np.float32)
    for name, numbers in metrics.items():
        values[:, kind.columns.index(name)] = numbers
    subjects = np.full(len(at_ms), subject, dtype=np.int32)
    given = np.full(len(at_ms), -1 if reasons is None else reasons, dtype=np.int32)
    stream = pack(subjects, at_ms, values, given if kind.has_reasons else None)
    with connection.cursor() as cursor, cursor.copy(copy_statement(kind)) as copy:
        copy.write(stream)


def mark_late(subject, hour, kind=GPU):
    DirtyHour.objects.create(kind=kind.code, subject_id=subject, hour=hour)


def every(seconds, *, hour=BASE_HOUR, hours=1, offset_ms=0):
    """Return the times of regular samples over some hours, Unix ms."""
    return np.arange(hour * HOUR_MS, (hour + hours) * HOUR_MS, seconds * 1000) + offset_ms
