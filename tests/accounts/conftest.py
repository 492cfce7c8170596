"""Actors and clean counters for the tests of the accounts."""

import pytest
from django.core.cache import cache

from panel.accounts.audit import Actor
from tests.accounts.people import person


@pytest.fixture(autouse=True)
def no_attempts_counted():
    """Start every test with counters at zero; the test run has a Valkey of its own."""
    cache.clear()


@pytest.fixture
def system():
    return Actor.system("test")


@pytest.fixture
def ada(db):
    return person("ada", "admin")
