"""Whether this installation can serve: database, Valkey, migrations, a worker and beat; the quick answer for balancers."""

from collections.abc import Callable
from functools import cache
from typing import Final

import structlog
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from redis.exceptions import RedisError

from panel.core import liveness
from panel.core.valkey import valkey

OK: Final = "ok"
log = structlog.get_logger(__name__)


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def _valkey() -> str:
    valkey().ping()
    return OK


@cache
def _expected_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationExecutor(None).loader.graph.nodes)


def missing_migrations() -> list[str]:
    """Return the migrations that the code has and the database has not, as `app.name`. Raises DatabaseError."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        applied = set(cursor.fetchall())
    return sorted(f"{app}.{name}" for app, name in _expected_migrations() - applied)


def _migrations() -> str:
    return "missing" if missing_migrations() else OK


def _beat() -> str:
    return OK if any(one.is_alive for one in liveness.beats()) else "silent"


def _worker() -> str:
    return OK if any(one.is_alive for one in liveness.workers()) else "silent"


CHECKS: Final[dict[str, Callable[[], str]]] = {
    "database": _database,
    "valkey": _valkey,
    "migrations": _migrations,
    "beat": _beat,
    "worker": _worker,
}


def readiness() -> dict[str, str]:
    """Return `ok`, or in one word what is wrong, for each part. The error itself goes to the log, not to strangers."""
    answers: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            answers[name] = check()
        except (RedisError, DatabaseError) as error:
            log.warning("readiness.failed", part=name, error=str(error))
            answers[name] = "unavailable"
    return answers
