"""Reading and storing which columns a person sees."""

from collections.abc import Collection

from frontend.fleet_list import COLUMNS, Tab
from frontend.models import TableColumns
from panel.accounts.models import User


def table_name(tab: Tab) -> str:
    """Return what a tab's table is called in the store."""
    return f"fleet.{tab}"


def columns_chosen(*, user: User, tab: Tab) -> list[str] | None:
    """Return the keys that the person chose, None while they never did. One query."""
    found = TableColumns.objects.filter(user=user, table=table_name(tab)).values_list("columns", flat=True).first()
    return list(found) if found is not None else None


def columns_save(*, user: User, tab: Tab, keys: Collection[str]) -> None:
    """Keep the choice; keys that no column has are left out. No keys: back to the usual columns."""
    chosen = [column.key for column in COLUMNS[tab] if column.key in keys]
    if not chosen:
        TableColumns.objects.filter(user=user, table=table_name(tab)).delete()
        return
    TableColumns.objects.update_or_create(user=user, table=table_name(tab), defaults={"columns": chosen})
