"""What every test stands on."""

import pytest


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Let tests with real transactions empty the audit trail: its trigger against TRUNCATE sleeps in the test database.

    The tests of the trail wake it.
    """
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_auditentry DISABLE TRIGGER audit_no_truncate")
