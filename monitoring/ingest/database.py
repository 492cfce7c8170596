"""The writer's own connection to the database that Django is configured for."""

from typing import Any, Final

import psycopg
from django.db import connection

STATEMENT_TIMEOUT_MS: Final = 10_000

_NOT_LIBPQ: Final = frozenset({"cursor_factory", "context", "prepare_threshold", "row_factory", "server_side_binding"})


def connection_parameters() -> dict[str, Any]:
    """Return libpq's parameters of Django's default database (of the test database, in tests)."""
    return {name: value for name, value in connection.get_connection_params().items() if name not in _NOT_LIBPQ}


async def connect() -> "psycopg.AsyncConnection[Any]":
    """Open a connection in autocommit mode; every group commit is a transaction of its own."""
    parameters = connection_parameters() | {
        "application_name": "fleetdeck-ingest",
        "connect_timeout": 3,
        "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c TimeZone=UTC",
    }
    return await psycopg.AsyncConnection.connect(**parameters, autocommit=True)
