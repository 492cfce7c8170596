"""People of each role, their browsers, and clean counters for the tests of the pages."""

import pytest
from django.core.cache import cache
from django.test import Client

from tests.accounts.people import person


@pytest.fixture(autouse=True)
def no_attempts_counted():
    """Start every test with counters at zero; the test run has a Valkey of its own."""
    cache.clear()


@pytest.fixture
def people(db):
    """One person of each role, by role."""
    return {role: person(name, role) for name, role in (("vic", "viewer"), ("olga", "operator"), ("ada", "admin"))}


@pytest.fixture
def browser(people):
    """Make the browser of a role, logged in; of a stranger for an empty role."""

    def of(role, **options):
        client = Client(**options)
        if role:
            client.force_login(people[role])
        return client

    return of


@pytest.fixture
def ada(browser):
    """The browser of an admin."""
    return browser("admin")
