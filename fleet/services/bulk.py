"""One UPDATE for many rows: values travel as arrays, so that a report of 64 cards costs one statement."""

import json
from collections.abc import Sequence
from typing import Any

from django.db import connection, models


def _column(row: models.Model, field: "models.Field[Any, Any]") -> Any:
    value = getattr(row, field.attname)
    if value is None:
        return None
    return json.dumps(value) if isinstance(field, models.JSONField) else field.get_db_prep_save(value, connection)


def rows_update(rows: Sequence[models.Model], fields: Sequence[str], *, guard_version: bool = False) -> int:
    """Store the named fields of rows of one model; returns how many rows were found.

    guard_version: touch only rows whose `version` is still the one in memory, and raise it by one there; the caller
    compares the count (compare-and-swap) and raises it in memory.
    """
    if not rows:
        return 0
    meta = type(rows[0])._meta  # noqa: SLF001 (Django's documented way to a model's fields)
    columns = [meta.get_field(name) for name in ("id", *(("version",) if guard_version else ()), *fields)]
    arrays: list[Any] = []
    casts: list[str] = []
    for field in columns:
        assert isinstance(field, models.Field)  # noqa: S101 (callers name columns; narrows the type)
        db_type = (field.rel_db_type(connection) if field.primary_key else field.db_type(connection)) or "text"
        casts.append("%s::text[]::jsonb[]" if isinstance(field, models.JSONField) else f"%s::{db_type}[]")
        arrays.append([_column(row, field) for row in rows])
    names = [f'"{field.column}"' for field in columns]  # type: ignore[union-attr]
    assignments = [f"{name} = given.{name}" for name in names[2 if guard_version else 1 :]]
    condition = "stored.id = given.id"
    if guard_version:
        assignments.append("version = stored.version + 1")
        condition += " AND stored.version = given.version"
    source = f"unnest({', '.join(casts)}) AS given ({', '.join(names)})"
    sql = f'UPDATE "{meta.db_table}" AS stored SET {", ".join(assignments)} FROM {source} WHERE {condition}'  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, arrays)
        return int(cursor.rowcount)
