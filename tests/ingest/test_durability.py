"""Whatever breaks in the middle: an acknowledged sample is there, once, and a bad report harms only itself."""

import asyncio
import random
import threading

import psycopg
import pytest
from django.db import connection

from fleet.models import Agent, AgentStream
from monitoring.ingest import writer
from monitoring.ingest.link import Link
from tests.ingest.panel import Panel, gpu, join


def stored_utilizations():
    with connection.cursor() as cursor:
        cursor.execute("SELECT utilization_percent::int FROM gpu_sample ORDER BY 1")
        return [value for (value,) in cursor.fetchall()]


def kill_writers():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name = 'fleetdeck-ingest' AND datname = current_database()"
        )
        return cursor.fetchone()[0]


def test_a_connection_that_broke_while_idle_costs_no_report(panel):
    sender = join()
    panel.post(sender, sender.report([gpu()]))
    assert kill_writers() == 1
    assert panel.post(sender, sender.report([gpu()])).status_code == 200
    assert len(stored_utilizations()) == 4


@pytest.mark.parametrize("moment", ["advance", "answer", "copy", "commit"])
def test_a_backend_killed_inside_the_transaction_loses_and_doubles_nothing(panel, monkeypatch, moment):
    sender = join()
    panel.post(sender, sender.report([gpu(ages=(0,), utilization_percent=1)]))
    kills = iter([True])

    def kill_once():
        if next(kills, False):
            thread = threading.Thread(target=_in_own_connection)
            thread.start()
            thread.join()

    def _in_own_connection():
        kill_writers()
        connection.close()

    step = {"advance": "send_begin", "answer": "begun", "copy": "commit", "commit": "_drain"}[moment]
    real = getattr(Link, step)

    async def kill_then(*arguments):
        kill_once()
        return await real(*arguments)

    monkeypatch.setattr(Link, step, kill_then)
    response = panel.post(sender, sender.report([gpu(ages=(0,), utilization_percent=2)]))
    assert response.status_code == 200
    assert stored_utilizations() == [1, 2]


def test_a_commit_whose_outcome_was_lost_is_not_stored_again(panel, monkeypatch):
    sender = join()
    panel.post(sender, sender.report([gpu(ages=(0,), utilization_percent=1)]))
    real, losses = writer.Writer._transact, iter([True])

    async def commit_then_lose(self, group, lane):
        committed = await real(self, group, lane)
        if next(losses, False):
            await lane.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return committed

    monkeypatch.setattr(writer.Writer, "_transact", commit_then_lose)
    response = panel.post(sender, sender.report([gpu(ages=(0,), utilization_percent=2)]))
    assert (response.status_code, response.answer["duplicate"]) == (200, True)
    assert stored_utilizations() == [1, 2]


def test_while_postgres_is_away_reports_are_put_off_and_afterwards_stored(panel, monkeypatch):
    sender = join()
    panel.post(sender, sender.report([gpu(ages=(0,), utilization_percent=1)]))
    links = panel.ingest.writer._links
    connect = links._connect

    async def refuse():
        raise psycopg.OperationalError("connection refused")

    links._connect = refuse
    kill_writers()
    report = sender.report([gpu(ages=(0,), utilization_percent=2)])
    for _ in range(3):
        response = panel.post(sender, report)
        assert (response.status_code, response.answer["code"]) == (503, "unavailable")
        assert int(response.headers["retry-after"]) >= 1
    assert AgentStream.objects.get().last_seq == 1
    links._connect, links._retry_at = connect, 0.0
    assert "duplicate" not in panel.post(sender, report).answer
    assert stored_utilizations() == [1, 2]


def test_a_stream_under_constant_kills_is_stored_once(store, settings):
    """Agents that retry as they should, many at once, while the writer's backend is killed again and again."""
    settings.INGEST_REPORTS_PER_SECOND = 1_000
    with Panel() as panel:
        kills = stream_under_kills(panel)
    assert kills > 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT power_watts::int FROM gpu_sample ORDER BY 1")
        assert [value for (value,) in cursor.fetchall()] == list(range(90))


def stream_under_kills(panel):
    """Let six agents send fifteen reports each until each is acknowledged; returns how many backends were killed."""
    agents = [join(f"gpu-{number}") for number in range(6)]
    kills, ending = [], threading.Event()

    def keep_killing():
        while not ending.wait(random.uniform(0.02, 0.15)) and len(kills) < 40:
            kills.append(kill_writers())
        connection.close()

    async def stream(sender, number):
        for step in range(15):
            value = number * 15 + step
            report = sender.report([gpu(f"GPU-{number}", ages=(0,), power_milliwatts=value * 1000)])
            while (await panel._post(sender, report)).status_code != 200:
                panel.ingest.writer._links._retry_at = 0.0

    async def all_streams():
        await asyncio.gather(*(stream(sender, number) for number, sender in enumerate(agents)))

    killer = threading.Thread(target=keep_killing)
    killer.start()
    try:
        panel.run(all_streams())
    finally:
        ending.set()
        killer.join()
    return sum(kills)


def test_reports_that_arrive_together_share_a_commit(panel):
    agents = [join(f"gpu-{number}") for number in range(12)]
    for number, sender in enumerate(agents):
        panel.post(sender, sender.report([gpu(f"GPU-{number}")]))
    before = panel.ingest.writer.commits
    answers = panel.post_all(
        [(sender, sender.report([gpu(f"GPU-{i}", facts=False)])) for i, sender in enumerate(agents)]
    )
    assert all(answer.status_code == 200 for answer in answers)
    assert panel.ingest.writer.commits - before < 12


def test_one_bad_report_does_not_fail_its_neighbours(panel):
    """An agent deleted between the look-up of its token and the commit breaks the group's statement."""
    good, bad = [join(f"gpu-{number}") for number in range(4)], join("gone")
    for number, sender in enumerate([*good, bad]):
        panel.post(sender, sender.report([gpu(f"GPU-{number}")]))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM fleet_agentstream WHERE agent_id = %s", [bad.agent.pk])
        cursor.execute("DELETE FROM fleet_agent WHERE id = %s", [bad.agent.pk])
    pairs = [(sender, sender.report([gpu(f"GPU-{i}", facts=False)])) for i, sender in enumerate([*good, bad])]
    answers = panel.post_all(pairs)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 401]
    assert answers[-1].answer["code"] == "token_refused"


def test_a_missing_partition_is_made_and_meanwhile_nothing_is_lost(panel):
    sender = join()
    panel.post(sender, sender.report([gpu(ages=(0,), utilization_percent=1)]))
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM gpu_sample LIMIT 1")
        cursor.execute(f"DROP TABLE {cursor.fetchone()[0]}")
    report = sender.report([gpu(ages=(0,), utilization_percent=2)])
    assert panel.post(sender, report).status_code == 503
    for task in list(panel.ingest._repairs):
        panel.run(_finished(task))
    assert panel.post(sender, report).status_code == 200
    assert stored_utilizations() == [2]


async def _finished(task):
    await task


def test_closing_stores_what_was_sent(store):
    sender = join()
    with Panel() as panel:
        panel.post(sender, sender.report([gpu(ages=(0,))]))
    assert len(stored_utilizations()) == 1
    assert Agent.objects.get().last_seen_at is not None
