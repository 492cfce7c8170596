"""A report on its way: stored once, answered after the commit, refused with a reason."""

import uuid
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest
from django.db import connection

from fleet.agent import wire
from fleet.models import Agent, AgentStream, Gpu, Server
from monitoring.models import DirtyHour
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
    card = gpu(ages=(5, 0), at_ms=at, utilization_percent=70, power_milliwatts=350_250)
    response = panel.post(sender, sender.report([card], host))
    assert response.status_code == 200
    assert response.answer["seq"] == 1
    card = Gpu.objects.get(server=sender.server)
    assert (
        rows(columns="subject_id, utilization_percent, power_watts, encoder_percent")
        == [(card.pk, 70.0, 350.25, None)] * 2
    )
    latest = latest_for_gpus(gpu_ids=[card.pk])[card.pk]
    assert latest.at == datetime.fromtimestamp(at / 1000, tz=UTC)
    assert latest.values["utilization_percent"] == 70.0
    assert latest.values["encoder_percent"] is None
    assert rows("host_sample", "cpu_percent, load_1m") == [(12.5, 1.5)]
    assert latest_for_servers(server_ids=[sender.server.pk])[sender.server.pk].values["cpu_percent"] == 12.5


def test_samples_sent_as_rows_are_stored_like_those_sent_as_columns(panel):
    sender, at = join(), now_ms()
    for step, as_rows in enumerate((False, True)):
        before, card = (gpu(ages=ages, at_ms=at, energy_millijoules=7, power_milliwatts=5) for ages in ((9,), (4, 0)))
        card.previous = before.samples[0]
        host = [wire.HostSample(at_ms=at, monotonic_ms=10_000_000, load_1m=1.5)]
        report = sender.report([card], host, host_previous=wire.HostSample(at_ms=at - 1, monotonic_ms=9_999_999))
        assert panel.post(sender, report, as_rows=as_rows).status_code == 200
        assert len(rows()) == 2 + 2 * step
        assert len(rows("host_sample")) == 1 + step
    as_columns, as_rows = rows()[::2], rows()[1::2]
    assert as_columns == as_rows
    assert len(set(rows("host_sample"))) == 1


@pytest.mark.parametrize("as_rows", [False, True])
def test_the_first_sample_ticks_off_the_join_however_samples_travel(panel, as_rows):
    host = [wire.HostSample(at_ms=now_ms(), monotonic_ms=10_000_000, load_1m=1.5)]
    of_host, of_card = join("of-host", state="joining"), join("of-card", state="joining")
    for sender, carried in ((of_host, ([], host)), (of_card, ([gpu(ages=(0,), at_ms=now_ms())], []))):
        assert panel.post(sender, sender.report(), as_rows=as_rows).status_code == 200
        assert Server.objects.get(pk=sender.server.pk).first_sample_at is None
        assert panel.post(sender, sender.report(*carried), as_rows=as_rows).status_code == 200
        assert Server.objects.get(pk=sender.server.pk).first_sample_at is not None


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
    start = end - timedelta(seconds=60)
    result = series(kind="gpu", subject_ids=[card.pk], metrics=["utilization_percent"], start=start, end=end, points=60)
    assert result.level == "raw"
    assert result.step_seconds <= 2
    line = result.series[0].average
    assert np.nanmax(line) == np.nanmin(line) == 40
    assert np.isnan(line[:10]).all()
    assert not np.isnan(line[-11:-2]).any()


def test_json_is_taken_and_answered_in_json(panel):
    sender = join()
    content = msgspec.json.encode(sender.report([gpu()]))
    response = panel.post(sender, None, content=content, headers={"content-type": "application/json"})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.answer["seq"] == 1


def test_a_seq_may_be_skipped_but_never_goes_back(panel):
    sender = join()
    for seq, is_duplicate in ((5, False), (9, False), (7, True), (9, True), (10, False)):
        response = panel.post(sender, sender.report([gpu()], seq=seq))
        assert response.answer.get("duplicate", False) is is_duplicate
    assert len(rows()) == 6


def test_a_new_run_of_the_agent_begins_at_one_again(panel):
    sender = join()
    panel.post(sender, sender.report([gpu()], seq=50))
    sender.boot_id, sender.seq = str(uuid.uuid4()), 0
    assert "duplicate" not in panel.post(sender, sender.report([gpu()])).answer
    assert AgentStream.objects.filter(agent=sender.agent).count() == 2


def test_the_answer_tells_intervals_and_whether_facts_are_missing(panel):
    sender = join(sample_interval_seconds=7, report_interval_seconds=14, assignments_version=3)
    bare = panel.post(sender, sender.report([gpu(facts=False)])).answer
    assert (bare["sample_interval_seconds"], bare["report_interval_seconds"]) == (7, 14)
    assert bare["assignments_version"] == 3
    assert abs(bare["panel_time_ms"] - now_ms()) < 5_000
    assert bare["needs_facts"] is True
    host = wire.HostFacts(hostname="gpu-1", cpu_count=8)
    assert "needs_facts" not in panel.post(sender, sender.report([gpu()], host=host)).answer


def test_while_somebody_looks_the_agent_is_asked_to_report_more_often(panel):
    sender = join()
    panel.ingest.publisher.watched = frozenset({sender.server.pk})
    answer = panel.post(sender, sender.report([gpu()])).answer
    assert (answer["sample_interval_seconds"], answer["report_interval_seconds"]) == (2.0, 2.0)


def test_a_card_of_another_server_is_never_touched(panel):
    mine, theirs = join("gpu-1"), join("gpu-2")
    panel.post(mine, mine.report([gpu("GPU-x", utilization_percent=10)]))
    panel.post(theirs, theirs.report([gpu("GPU-x", utilization_percent=90)]))
    cards = {card.server_id: card.pk for card in Gpu.objects.filter(uuid="GPU-x")}
    latest = latest_for_gpus(gpu_ids=cards.values())
    assert latest[cards[mine.server.pk]].values["utilization_percent"] == 10
    assert latest[cards[theirs.server.pk]].values["utilization_percent"] == 90


def test_older_samples_do_not_replace_the_latest(panel):
    sender = join()
    panel.post(sender, sender.report([gpu(utilization_percent=10)]))
    panel.post(sender, sender.report([gpu(ages=(600, 595), utilization_percent=90)]))
    card = Gpu.objects.get()
    assert latest_for_gpus(gpu_ids=[card.pk])[card.pk].values["utilization_percent"] == 10
    assert len(rows()) == 4


def test_late_samples_mark_their_hour_and_punctual_ones_do_not(panel):
    sender = join()
    panel.post(sender, sender.report([gpu(ages=(10, 0))]))
    assert not DirtyHour.objects.exists()
    at = now_ms()
    panel.post(sender, sender.report([gpu(ages=(7200, 7195, 0), at_ms=at)]))
    card = Gpu.objects.get()
    hours = {(at - 7200_000) // 3_600_000, (at - 7195_000) // 3_600_000}
    assert set(DirtyHour.objects.values_list("kind", "subject_id", "hour")) == {(1, card.pk, hour) for hour in hours}
    panel.post(sender, sender.report([gpu(ages=(7200, 0), at_ms=at)], seq=2))  # a duplicate
    assert DirtyHour.objects.count() == len(hours)


def test_samples_of_a_clock_that_is_wrong_by_minutes_are_stored_at_their_true_age(panel):
    sender = join()
    at = now_ms()
    card = gpu(ages=(10, 0), at_ms=at + 180_000)
    headers = {
        wire.HEADER_SENT_AT_MS: str(at + 180_000),
        wire.HEADER_SENT_MONOTONIC_MS: "1000000000",
        wire.HEADER_OS_BOOT_ID: "boot-1",
    }
    panel.post(sender, sender.report([card], os_boot_id="boot-1"), headers=headers)
    ages = [at / 1000 - one.timestamp() for (one,) in rows(columns="at")]
    assert ages == [pytest.approx(10, abs=2), pytest.approx(0, abs=2)]
    assert Agent.objects.get().clock_skew_seconds == pytest.approx(180, abs=2)


def test_one_card_of_eight_that_gives_nothing_does_not_hide_the_others(panel):
    sender = join()
    cards = [gpu(f"GPU-{number}", utilization_percent=number) for number in range(7)]
    lost = wire.Gpu(uuid="GPU-7", state="lost", reason="gpu_lost")
    assert panel.post(sender, sender.report([*cards, lost])).status_code == 200
    assert Gpu.objects.count() == 8
    assert len(rows()) == 14


def test_only_the_path_of_news_touches_the_inventory(panel, monkeypatch):
    from monitoring.ingest import inventory

    calls = []
    real = inventory.inventory_apply
    monkeypatch.setattr(inventory, "inventory_apply", lambda **arguments: calls.append(1) or real(**arguments))
    sender = join(state="ready")
    host = wire.HostFacts(hostname="gpu-1")
    panel.post(sender, sender.report([gpu()], host=host))
    Server.objects.filter(pk=sender.server.pk).update(state="ready")
    panel.post(sender, sender.report([gpu(facts=False)]))
    assert len(calls) == 1
    panel.post(sender, sender.report([gpu(facts=False), gpu("GPU-b", facts=False)]))
    assert len(calls) == 2
    panel.post(sender, sender.report([gpu(facts=False), gpu("GPU-b", facts=False)], driver=wire.Driver(state="error")))
    assert len(calls) == 3
