"""A report on its way: stored once, answered after the commit, refused with a reason."""

from datetime import UTC, datetime, timedelta

import numpy
import pytest
from django.db import connection

from fleet.agent import wire
from fleet.models import Agent, AgentStream, Gpu
from monitoring.selectors import latest_for_gpus, latest_for_servers, series
from tests.ingest.panel import gpu, join, now_ms


def rows(table="gpu_sample", columns="*"):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {table} ORDER BY subject_id, at")
        return cursor.fetchall()


def test_samples_of_a_report_are_stored_and_the_newest_is_the_latest(panel):
    sender = join()
    at = now_ms()
    host = [wire.HostSample(at_ms=at, monotonic_ms=10_000_000, cpu_percent=12.5, load_1m=1.5)]
    response = panel.post(sender, sender.report([gpu(ages=(5, 0), at_ms=at, utilization_percent=70, power_milliwatts=350_250)], host))
    assert response.status_code == 200
    assert response.answer["seq"] == 1
    card = Gpu.objects.get(server=sender.server)
    assert rows(columns="subject_id, utilization_percent, power_watts, encoder_percent") == [(card.pk, 70.0, 350.25, None)] * 2
    latest = latest_for_gpus(gpu_ids=[card.pk])[card.pk]
    assert latest.at == datetime.fromtimestamp(at / 1000, tz=UTC)
    assert latest.values["utilization_percent"] == 70.0
    assert latest.values["encoder_percent"] is None
    assert rows("host_sample", "cpu_percent, load_1m") == [(12.5, 1.5)]
    assert latest_for_servers(server_ids=[sender.server.pk])[sender.server.pk].values["cpu_percent"] == 12.5


def test_a_report_sent_again_is_answered_as_a_duplicate_and_stored_once(panel):
    sender = join()
    report = sender.report([gpu(utilization_percent=1)])
    first, second = panel.post(sender, report), panel.post(sender, report)
    assert (first.status_code, second.status_code) == (200, 200)
    assert "duplicate" not in first.answer
    assert second.answer["duplicate"] is True
    assert len(rows()) == 2
    assert AgentStream.objects.get(agent=sender.agent).last_seq == 1


def test_the_same_report_many_times_at_once_is_stored_once(panel):
    sender = join()
    panel.post(sender, sender.report([gpu()]))
    report = sender.report([gpu(facts=False)])
    answers = panel.post_all([(sender, report)] * 12)
    assert [answer.status_code for answer in answers] == [200] * 12
    assert sum("duplicate" not in answer.answer for answer in answers) == 1
    assert len(rows()) == 4


def test_the_agent_row_tells_of_the_last_report(panel):
    sender = join()
    headers = {wire.HEADER_SENT_AT_MS: str(now_ms() - 2_000)}
    panel.post(sender, sender.report([gpu()], spooled_batches=3, lost_samples=7), headers=headers)
    agent = Agent.objects.get(pk=sender.agent.pk)
    assert agent.spooled_batches == 3
    assert agent.lost_samples == 7
    assert agent.version == "0.1.0"
    assert agent.last_seen_at is not None
    assert agent.clock_skew_seconds == pytest.approx(-2.0, abs=1.0)


def test_a_chart_shows_the_samples_of_a_report(panel):
    sender = join()
    at = now_ms()
    panel.post(sender, sender.report([gpu(ages=(20, 15, 10, 5, 0), at_ms=at, utilization_percent=40)]))
    card = Gpu.objects.get(server=sender.server)
    end = datetime.fromtimestamp(at / 1000 + 1, tz=UTC)
    result = series(kind="gpu", subject_ids=[card.pk], metrics=["utilization_percent"], start=end - timedelta(seconds=60), end=end, points=60)
    assert result.level == "raw"
    assert result.step_seconds <= 2
    line = result.series[0].average
    assert numpy.nanmax(line) == numpy.nanmin(line) == 40
    assert numpy.isnan(line[:10]).all()
    assert not numpy.isnan(line[-11:-2]).any()
