"""Connections to Postgres that a web process holds."""

import asyncio
import contextlib

import httpx
import psycopg
import pytest

from tests.waiting import eventually
from tests.webpanel import WebPanel

AT_ONCE, POOL, WAIT_SECONDS = 60, 4, 8

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    settings = {"FLEETDECK_DATABASE_POOL": str(POOL), "FLEETDECK_DATABASE_POOL_WAIT": str(WAIT_SECONDS)}
    with WebPanel(tmp_path_factory.mktemp("panel"), **settings) as running:
        yield running


def connections(panel):
    """Return how many connections the database of this panel has, this one apart."""
    with psycopg.connect(panel.database_url) as connection:
        return connection.execute(
            "SELECT count(*) - 1 FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend'"
        ).fetchone()[0]


async def burst(panel):
    """Ask for many pages at once; return the answers' status codes."""
    options = {"base_url": panel.url, "headers": panel.api.headers, "timeout": 60}
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=AT_ONCE), **options) as client:
        answers = await asyncio.gather(*(client.get("/api/v1/servers/") for _ in range(AT_ONCE)))
    return {answer.status_code for answer in answers}


def test_many_requests_at_once_share_the_connections_of_the_pool(panel):
    assert asyncio.run(burst(panel)) == {200}
    assert connections(panel) <= POOL + 1, "one more is the writer of reports"


def test_a_database_that_was_restarted_is_found_again(panel):
    with psycopg.connect(panel.database_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert asyncio.run(burst(panel)) == {200}


def waiting_for_a_lock(connection):
    return connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0]


async def while_all_are_taken(panel, connection):
    """Return what the API and a page answer while every connection of the pool waits for a lock."""
    options = {"base_url": panel.url, "timeout": 60}
    session = {"Cookie": "sessionid=" + "a" * 32}
    async with httpx.AsyncClient(**options) as client:
        holding = [asyncio.create_task(client.get("/api/v1/servers/", headers=panel.api.headers)) for _ in range(POOL)]
        await asyncio.to_thread(eventually, lambda: waiting_for_a_lock(connection), lambda count: count == POOL)
        answers = await asyncio.gather(
            client.get("/api/v1/servers/", headers=panel.api.headers),
            client.get("/fleet/", headers=session),
            client.get("/fleet/", headers={**session, "HX-Request": "true"}),
        )
        connection.execute("ROLLBACK")
        held = await asyncio.gather(*holding)
    return answers, {answer.status_code for answer in held}


def test_who_finds_no_free_connection_is_told_when_to_come_back(panel):
    with contextlib.closing(psycopg.connect(panel.database_url, autocommit=True)) as connection:
        connection.execute("BEGIN")
        connection.execute("LOCK TABLE fleet_server IN ACCESS EXCLUSIVE MODE")
        (api, page, fragment), held = asyncio.run(while_all_are_taken(panel, connection))
    assert held == {200}
    assert [answer.status_code for answer in (api, page, fragment)] == [503] * 3
    assert [int(answer.headers["Retry-After"]) for answer in (api, page, fragment)] == [5] * 3
    [error] = api.json()["errors"]
    assert (api.json()["type"], error["code"]) == ("server_error", "database_unavailable")
    assert "database" in error["detail"]
    assert "database" in page.text
    assert "database" in fragment.headers["HX-Trigger"]
