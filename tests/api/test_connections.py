"""Connections to Postgres that a web process holds."""

import asyncio

import httpx
import psycopg
import pytest

from tests.webpanel import WebPanel

AT_ONCE, POOL = 60, 4

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    with WebPanel(tmp_path_factory.mktemp("panel"), FLEETDECK_DATABASE_POOL=str(POOL)) as running:
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
