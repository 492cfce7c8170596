"""The checks of Self-health: each has a state that is well and one that is not."""

import json
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import translation

from panel.core import liveness
from panel.core.clock import now
from panel.core.health import CheckStatus, health_checks, worst
from panel.core.valkey import valkey
from panel.health.words import phrases, things

QUEUE_KEY = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"] + settings.CELERY_TASK_DEFAULT_QUEUE
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _clean_valkey():
    keys = (liveness.WORKERS_KEY, liveness.BEATS_KEY, liveness.QUEUE_KEY, QUEUE_KEY)
    valkey().delete(*keys)
    yield
    valkey().delete(*keys)


def by_code():
    return {check.code: check for check in health_checks()}


def test_every_part_of_the_page_has_a_check_with_a_code_of_its_own():
    checks = health_checks()
    codes = [check.code for check in checks]
    assert len(codes) == len(set(codes))
    assert {
        "beat_age_seconds",
        "workers",
        "queue_depth",
        "queue_wait_seconds",
        "valkey_policy",
        "database_connections",
        "migrations_missing",
        "partitions_ahead_gpu_sample",
        "live_sockets",
        "agents_outdated",
        "agents_skew_seconds",
        "clock_difference_seconds",
        "disk_free_bytes",
    } <= set(codes)
    assert CheckStatus.UNKNOWN not in {check.status for check in checks}
    assert all(check.advice for check in checks if check.status != CheckStatus.OK)


def test_a_scheduler_that_never_ticked_is_critical_and_one_that_ticks_is_well():
    assert by_code()["beat_age_seconds"].status == CheckStatus.CRITICAL
    liveness.beat_alive()
    assert by_code()["beat_age_seconds"].status == CheckStatus.OK


def test_two_schedulers_at_once_are_a_warning_that_names_both():
    liveness.beat_alive()
    valkey().hset(liveness.BEATS_KEY, "elsewhere:7", str(now().timestamp()))
    check = by_code()["beat_age_seconds"]
    assert check.status == CheckStatus.WARNING
    assert "elsewhere:7" in check.advice


def test_a_worker_that_died_without_a_word_is_named_beside_the_living_one():
    liveness.worker_alive("celery@living")
    valkey().hset(liveness.WORKERS_KEY, "celery@dead", str(now().timestamp() - 300))
    check = by_code()["workers"]
    assert check.status == CheckStatus.WARNING
    assert "celery@dead" in check.advice
    liveness.worker_gone("celery@dead")
    assert by_code()["workers"].status == CheckStatus.OK


def test_a_process_silent_for_an_hour_is_forgotten():
    valkey().hset(liveness.WORKERS_KEY, "celery@old", str(now().timestamp() - 4000))
    assert liveness.workers() == []
    assert valkey().hgetall(liveness.WORKERS_KEY) == {}


def test_the_oldest_waiting_task_is_told_with_its_age():
    for age in (200, 5, 1):
        valkey().lpush(QUEUE_KEY, json.dumps({"headers": {"published_at": now().timestamp() - age}}))
    checks = by_code()
    assert checks["queue_depth"].value == "3"
    assert checks["queue_depth"].status == CheckStatus.OK
    assert checks["queue_oldest_seconds"].number == pytest.approx(200, abs=5)
    assert checks["queue_oldest_seconds"].status == CheckStatus.CRITICAL


def test_a_message_of_another_program_in_the_queue_breaks_nothing():
    valkey().lpush(QUEUE_KEY, "not json")
    checks = by_code()
    assert checks["queue_depth"].value == "1"
    assert "queue_oldest_seconds" not in checks


def test_a_long_queue_is_critical():
    valkey().lpush(QUEUE_KEY, *["{}"] * 1000)
    assert by_code()["queue_depth"].status == CheckStatus.CRITICAL


def test_a_task_that_came_through_shows_how_long_it_waited():
    assert by_code()["queue_wait_seconds"].status == CheckStatus.CRITICAL
    liveness.queue_probed(waited_seconds=0.25)
    check = by_code()["queue_wait_seconds"]
    assert check.status == CheckStatus.OK
    assert check.number == 0.25


def test_the_queue_probe_measures_the_wait_from_the_stamp_of_its_message():
    from panel.core.tasks import queue_probe

    queue_probe.push_request(headers={"published_at": now().timestamp() - 7})
    try:
        queue_probe.run()
    finally:
        queue_probe.pop_request()
    assert liveness.queue_probe_last().waited_seconds == pytest.approx(7, abs=1)


@pytest.mark.parametrize(
    ("policy", "maxmemory", "status"),
    [
        ("noeviction", "0", CheckStatus.OK),
        ("allkeys-lru", "0", CheckStatus.WARNING),
        ("allkeys-lru", "1000000000", CheckStatus.CRITICAL),
    ],
)
def test_a_policy_that_throws_tasks_away_is_told(policy, maxmemory, status):
    try:
        valkey().config_set("maxmemory", maxmemory)
        valkey().config_set("maxmemory-policy", policy)
        assert by_code()["valkey_policy"].status == status
    finally:
        valkey().config_set("maxmemory-policy", "noeviction")
        valkey().config_set("maxmemory", "0")


def test_rollups_that_stand_still_are_told():
    from monitoring.store.progress import progress_set
    from monitoring.store.tables import FIVE_MINUTES, GPU

    for lag, status in ((60, CheckStatus.OK), (1200, CheckStatus.WARNING), (7200, CheckStatus.CRITICAL)):
        progress_set(GPU, str(FIVE_MINUTES), int((now().timestamp() - lag) * 1000))
        assert by_code()["rollup_lag_gpu_seconds"].status == status


@pytest.mark.parametrize(
    ("days_later", "status"), [(4, CheckStatus.OK), (5, CheckStatus.WARNING), (9, CheckStatus.CRITICAL)]
)
def test_partitions_that_run_out_are_told(time_machine, days_later, status):
    from monitoring.services import sample_partitions_make

    sample_partitions_make()
    time_machine.move_to(now() + timedelta(days=days_later))
    assert by_code()["partitions_ahead_gpu_sample"].status == status


def test_a_full_disk_is_told(monkeypatch):
    from panel.health import stores

    monkeypatch.setattr(stores.shutil, "disk_usage", lambda _: stores.shutil._ntuple_diskusage(1000, 960, 40))
    assert by_code()["disk_free_bytes"].status == CheckStatus.CRITICAL


def test_a_check_that_cannot_be_run_is_unknown_and_hides_no_other(monkeypatch):
    from redis.exceptions import ConnectionError as ValkeyGone

    def refuse():
        raise ValkeyGone("gone")

    monkeypatch.setattr(liveness, "valkey", refuse)
    checks = by_code()
    assert checks["beat"].status == CheckStatus.UNKNOWN
    assert checks["database_connections"].status == CheckStatus.OK
    assert worst(checks.values()) in (CheckStatus.CRITICAL, CheckStatus.WARNING, CheckStatus.UNKNOWN)


def test_phrases_and_names_stand_beside_each_other_as_the_language_writes_them():
    assert (phrases("3 alive", "2 s ago"), things(["web", "worker"])) == ("3 alive, 2 s ago", "web, worker")
    with translation.override("zh-hans"):
        assert (phrases("3 个存活", "2 秒前"), things(["web", "worker"])) == ("3 个存活，2 秒前", "web、worker")
