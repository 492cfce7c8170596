"""The test run stands on real services."""

import pytest
from django.core.cache import cache
from django.db import connection


@pytest.mark.django_db
def test_the_database_is_a_real_postgres_of_at_least_15():
    assert connection.vendor == "postgresql"
    assert connection.pg_version >= 150000


def test_the_cache_is_a_real_valkey():
    cache.set("k", "v", 5)
    assert cache.get("k") == "v"
