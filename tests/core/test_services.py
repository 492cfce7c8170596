"""The test run stands on real services."""

import os

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


def test_workers_of_one_run_do_not_share_a_valkey_database(settings):
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    expected = "0" if worker is None else str(1 + int(worker.removeprefix("gw")))
    assert settings.REDIS_URL.rpartition("/")[2] == expected
