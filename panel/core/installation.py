"""The name of this installation, by which it tells its own machines at a provider from those of others.

Two panels of one name would take each other's machines for theirs, and a copied database brings its name along. So the name
is bound to the database that it was drawn in: to the identifier that Postgres gives a cluster when it is made, which neither
a dump nor a restore carries, and to the database's number within it. Where the two differ, this is a copy until somebody
says which of the two goes on under the name. A copy of the cluster's files has the same identifier and is not noticed here.
"""

import secrets
from typing import Final

from django.db import DatabaseError, connection, transaction

from panel.core.models import Installation

ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
LENGTH: Final = 8


def new_name() -> str:
    """Return a fresh name: eight small letters and digits."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def database_mark() -> str:
    """Return what tells this database from a copy of it; empty where Postgres does not let us ask."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()) "
                "FROM pg_control_system()"
            )
            cluster, database = cursor.fetchone()
    except DatabaseError:
        return ""
    return f"{cluster}-{database}"


def _row() -> Installation:
    row, _ = Installation.objects.get_or_create(pk=1, defaults={"name": new_name(), "bound_to": database_mark()})
    if not row.bound_to and (mark := database_mark()):
        Installation.objects.filter(pk=1, bound_to="").update(bound_to=mark)
        row.bound_to = mark
    return row


def install_id() -> str:
    """Return this installation's id, eight small letters and digits; it is drawn once and kept in the database."""
    return _row().name


def install_id_known() -> str:
    """Return this installation's id without drawing one; empty where none was needed yet."""
    return Installation.objects.filter(pk=1).values_list("name", flat=True).first() or ""


def is_copied() -> bool:
    """Say whether this database is a copy of the one that the installation's id belongs to, and nobody has decided yet.

    Writes nothing: an id that is not bound yet belongs to the database in which it is used next.
    """
    bound_to = Installation.objects.filter(pk=1).values_list("bound_to", flat=True).first()
    return bool(bound_to) and database_mark() not in {"", bound_to}


def installation_bind(*, is_renamed: bool) -> tuple[str, str]:
    """Bind the id to this database, under a new name when `is_renamed`; return the id before and now."""
    with transaction.atomic():
        _row()
        row = Installation.objects.select_for_update().get(pk=1)
        before = row.name
        if is_renamed:
            row.name = new_name()
        row.bound_to = database_mark()
        row.save()
    return before, row.name
