"""When the database cannot be had: told from errors of the query itself, which are faults of the panel."""

from typing import Final

import psycopg
from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext as _

from panel.core.errors import Unavailable

RETRY_AFTER_SECONDS: Final = 5.0
# Classes of SQLSTATE: connection lost, no resources (too many connections, disk full), shut down by the operator.
_CLASSES: Final = ("08", "53", "57P")


def database_unavailable(error: BaseException | None) -> Unavailable | None:
    """Return what to tell the caller when `error` means that no connection was to be had, or that it broke; else None.

    A connection that was refused, or that the pool did not have in time, comes without an SQLSTATE: no server gave it one.
    """
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    cause = error.__cause__
    state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
    if state is not None and not state.startswith(_CLASSES):
        return None
    return Unavailable(
        _("The panel's database has no free connection, or does not answer. Try again in a few seconds."),
        code="database_unavailable",
        retry_after_seconds=RETRY_AFTER_SECONDS,
    )
