"""`/healthz` and `/readyz`: what balancers ask."""

import pytest
from django.db import connection

from panel.core import liveness
from panel.core.valkey import valkey
from panel.health import readiness as readiness_module


@pytest.fixture(autouse=True)
def _nobody_alive():
    keys = (liveness.WORKERS_KEY, liveness.BEATS_KEY, liveness.QUEUE_KEY)
    valkey().delete(*keys)
    yield
    valkey().delete(*keys)


def test_healthz_answers_without_a_session_a_host_name_or_a_database(client):
    response = client.get("/healthz", headers={"host": "10.1.2.3"})
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}
    assert response["Cache-Control"] == "no-store"


def test_only_reading_is_answered_by_the_probes(client):
    assert client.post("/healthz").status_code != 200


@pytest.mark.django_db
def test_readyz_names_the_processes_that_are_silent(client):
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {
        "status": "not_ready",
        "checks": {"database": "ok", "valkey": "ok", "migrations": "ok", "beat": "silent", "worker": "silent"},
    }


@pytest.mark.django_db
def test_readyz_is_ready_when_beat_and_a_worker_are_alive(client):
    liveness.beat_alive()
    liveness.worker_alive("celery@here")
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["status"] == "ready"


@pytest.mark.django_db
def test_a_worker_that_fell_silent_is_no_worker(client, time_machine):
    time_machine.move_to("2026-12-01T00:00:00Z", tick=False)
    liveness.beat_alive()
    liveness.worker_alive("celery@here")
    time_machine.move_to("2026-12-01T00:00:31Z", tick=False)
    liveness.beat_alive()
    assert client.get("/readyz").json()["checks"]["worker"] == "silent"


@pytest.mark.django_db
def test_a_missing_migration_is_not_ready(client):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'core' AND name = '0001_initial'")
    assert client.get("/readyz").json()["checks"]["migrations"] == "missing"


@pytest.mark.django_db
def test_a_valkey_that_is_away_is_named_and_tells_strangers_nothing_more(client, monkeypatch):
    import redis

    def refuse():
        raise redis.ConnectionError("secret-host:6379 refused")

    monkeypatch.setattr(readiness_module, "valkey", refuse)
    monkeypatch.setattr(liveness, "valkey", refuse)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["valkey"] == "unavailable"
    assert "secret-host" not in response.content.decode()


async def test_the_probes_answer_on_the_event_loop_too(async_client):
    response = await async_client.get("/healthz")
    assert response.status_code == 200
