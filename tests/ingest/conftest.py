"""An ingest application and an empty store for each test."""

import pytest
from django.db import connection

from monitoring.store.tables import KINDS
from tests.ingest.panel import Panel

SQL_TABLES = [kind.samples.name for kind in KINDS] + [
    f"{kind.rollup_prefix}_{seconds}" for kind in KINDS for seconds in (60, 300, 3600)
]


@pytest.fixture
def store(transactional_db):
    """The store's tables that no model describes, emptied as Django empties the others."""
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(SQL_TABLES)}")


@pytest.fixture
def panel(store):
    with Panel() as running:
        yield running
