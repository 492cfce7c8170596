"""Which errors mean that the database is not to be had."""

import psycopg
import psycopg_pool
import pytest
from django.db import IntegrityError, InterfaceError, OperationalError

from panel.core.database import database_unavailable


def raised(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "cause",
    [
        psycopg_pool.PoolTimeout("couldn't get a connection after 20.00 sec"),
        psycopg.OperationalError("connection refused"),
        psycopg.errors.AdminShutdown("terminating connection"),
        psycopg.errors.TooManyConnections("sorry, too many clients already"),
        psycopg.errors.ConnectionFailure("gone"),
    ],
)
def test_no_connection_and_a_broken_one_are_unavailable(cause):
    error = database_unavailable(raised(OperationalError(str(cause)), cause))
    assert (error.status, error.code, error.retry_after_seconds) == (503, "database_unavailable", 5)


def test_a_connection_that_was_closed_is_unavailable():
    assert database_unavailable(raised(InterfaceError("closed"), psycopg.InterfaceError("closed"))) is not None


@pytest.mark.parametrize(
    "error",
    [
        raised(OperationalError("deadlock"), psycopg.errors.DeadlockDetected("deadlock")),
        raised(OperationalError("slow"), psycopg.errors.QueryCanceled("statement timeout")),
        raised(IntegrityError("twice"), psycopg.errors.UniqueViolation("twice")),
        RuntimeError("something else"),
        None,
    ],
)
def test_what_a_query_did_wrong_is_a_fault_of_the_panel(error):
    assert database_unavailable(error) is None
