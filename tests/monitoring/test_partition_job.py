"""The job that makes partitions ahead: one table's trouble stays its own, and few days ahead are told of."""

import pytest
from django.db import connection

from monitoring import services
from panel.core.models import Event
from tests.monitoring.conftest import store  # noqa: F401


@pytest.fixture
def events(transactional_db):
    Event.objects.all().delete()
    yield Event.objects.filter(kind=services.PARTITIONS_LOW)
    assert set(services.sample_partitions_make().values()) <= {0, 3 + services.DAYS_AHEAD}


def drop_all(table):
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [table])
        for (partition,) in cursor.fetchall():
            cursor.execute(f"DROP TABLE {partition}")


def test_partitions_are_there_for_the_retention_and_a_week(events):
    for table in ("gpu_sample", "host_sample", "engine_sample"):
        drop_all(table)
    made = services.sample_partitions_make()
    assert made == dict.fromkeys(("gpu", "server", "replica"), 3 + services.DAYS_AHEAD)
    assert services.sample_partitions_make() == {"gpu": 0, "server": 0, "replica": 0}
    assert not events.exists()


def test_when_one_table_fails_the_other_still_gets_its_days_and_the_alert_names_the_first(events, monkeypatch):
    for table in ("gpu_sample", "host_sample", "engine_sample"):
        drop_all(table)
    real = services.partitions_make

    def failing(table, **days):
        with connection.cursor() as cursor:
            if table.name == "gpu_sample":
                cursor.execute("SELECT no_such_function()")
        return real(table, **days)

    with monkeypatch.context() as patched:
        patched.setattr(services, "partitions_make", failing)
        assert services.sample_partitions_make() == {
            "gpu": "failed",
            "server": 3 + services.DAYS_AHEAD,
            "replica": 3 + services.DAYS_AHEAD,
        }
        services.sample_partitions_make()
    (event,) = events  # told once, not at every run
    assert (event.subject_name, event.severity, event.data["days_ahead"]) == ("gpu_sample", "critical", 0)
