"""The store over time: hours close, charts stay the same whatever level feeds them, late samples change just their hour."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitoring import services
from monitoring.models import DirtyHour, SealedDay, SealedHour
from monitoring.selectors import fleet_series, series
from monitoring.store.tables import GPU, HOST, HOUR_MS
from panel.core.clock import now
from panel.core.errors import InvalidInput
from tests.monitoring.samples import BASE_HOUR, every, mark_late, put

pytestmark = pytest.mark.usefixtures("tables")


def moment(hours):
    return datetime.fromtimestamp((BASE_HOUR + hours) * 3600, tz=UTC)


def chart(first, last, points, *, metric="power_watts", subject=1, kind="gpu"):
    """Return the one series of a range given in hours after BASE_HOUR."""
    result = series(
        kind=kind, subject_ids=[subject], metrics=[metric], start=moment(first), end=moment(last), points=points
    )
    return result, result.series[0]


def expected(at_ms, values, result):
    """Return averages and maxima of samples in the result's buckets, computed one by one."""
    buckets = (np.asarray(at_ms) - result.from_ms) // (result.step_seconds * 1000)
    average, maximum = np.full(result.points, np.nan), np.full(result.points, np.nan)
    for bucket in range(result.points):
        some = values[(buckets == bucket) & ~np.isnan(values)]
        if len(some):
            average[bucket], maximum[bucket] = some.astype(np.float64).mean(), some.max()
    return average, maximum


def assert_same(one, average, maximum):
    np.testing.assert_allclose(one.average, average, rtol=1e-5)
    np.testing.assert_array_equal(one.maximum, maximum.astype(np.float32))


@pytest.fixture
def wave(at_hour):
    """Three hours of one card at 5 s with jitter, a value in milliwatts that moves, and a hole of ten minutes."""
    random = np.random.default_rng(1)
    at_ms = every(5, hours=3) + random.integers(0, 300, 3 * 720)
    watts = (np.round(300_000 + np.cumsum(random.integers(-2000, 2001, len(at_ms)))) / 1000).astype(np.float32)
    hole = (at_ms > (BASE_HOUR + 1) * HOUR_MS + 600_000) & (at_ms < (BASE_HOUR + 1) * HOUR_MS + 1_200_000)
    put(1, at_ms[~hole], power_watts=watts[~hole], utilization_percent=50)
    at_hour(3)
    return at_ms[~hole], watts[~hole]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("points", "level"), [(400, "raw"), (60, "1m"), (30, "5m"), (3, "1h")])
def test_a_chart_is_the_same_before_and_after_its_hours_are_closed(wave, at_hour, closed, points, level):
    if closed:
        at_hour(3.1)
        services.store_tick(now=now())
        assert SealedHour.objects.count() == 3
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE gpu_sample")
    result, one = chart(0, 3, points)
    assert (result.level, result.points <= points) == (level, True)
    average, maximum = expected(*wave, result)
    assert_same(one, average, maximum)


def test_the_open_hour_is_read_from_its_rollups_and_the_newest_samples(wave, at_hour):
    before = [chart(2, 3, points)[1] for points in (60, 12)]
    at_hour(2.7)
    services.store_tick(now=now())
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM gpu_rollup_300 WHERE hour = %s", [BASE_HOUR + 2])
        assert cursor.fetchone() == (1,)
        cursor.execute("DELETE FROM gpu_sample WHERE at < %s", [moment(2.6)])  # charts must not need them any more
    for old, points in zip(before, (60, 12), strict=True):
        _, new = chart(2, 3, points)
        assert_same(new, old.average, old.maximum)


def test_ticks_while_samples_arrive_leave_the_same_rollups_as_one_at_the_end(at_hour):
    at_ms = every(10)
    values = np.sin(np.arange(len(at_ms))).astype(np.float32) * 100 + 200
    for minute in range(0, 60, 3):
        some = (at_ms >= BASE_HOUR * HOUR_MS + minute * 60_000) & (at_ms < BASE_HOUR * HOUR_MS + (minute + 3) * 60_000)
        put(1, at_ms[some], power_watts=values[some])
        at_hour((minute + 3) / 60 + 0.001)
        services.store_tick(now=now())
    for points in (60, 12):
        result, one = chart(0, 1, points)
        assert_same(one, *expected(at_ms, values, result))


def test_a_late_sample_changes_its_hour_and_no_other(wave, at_hour):
    at_hour(3.1)
    services.store_tick(now=now())
    others = dict(SealedHour.objects.exclude(hour=BASE_HOUR + 1).values_list("hour", "data"))
    late = np.array([(BASE_HOUR + 1) * HOUR_MS + 900_000])
    put(1, late, power_watts=999.0)
    mark_late(1, BASE_HOUR + 1)
    services.store_tick(now=now())
    assert not DirtyHour.objects.exists()
    assert dict(SealedHour.objects.exclude(hour=BASE_HOUR + 1).values_list("hour", "data")) == others
    at_ms, watts = np.append(wave[0], late), np.append(wave[1], np.float32(999))
    for points in (400, 60, 30, 3):
        result, one = chart(0, 3, points)
        assert_same(one, *expected(at_ms, watts, result))


def test_a_late_sample_in_the_open_hour_reaches_its_rollups(at_hour):
    at_ms = every(10)[:300]
    put(1, at_ms, power_watts=100.0)
    at_hour(0.84)
    services.store_tick(now=now())
    put(1, [BASE_HOUR * HOUR_MS + 65_000], power_watts=400.0)
    mark_late(1, BASE_HOUR)
    services.store_tick(now=now())
    _, one = chart(0, 1, 12)
    assert one.maximum[0] == 400.0
    assert not DirtyHour.objects.exists()


def test_redoing_everything_twice_changes_nothing(wave, at_hour):
    at_hour(3.1)
    services.store_tick(now=now())
    before = list(SealedHour.objects.order_by("hour").values_list("hour", "samples", "data"))
    for hour in range(3):
        mark_late(1, BASE_HOUR + hour)
    services.store_tick(now=now())
    assert list(SealedHour.objects.order_by("hour").values_list("hour", "samples", "data")) == before


def test_closed_days_become_blocks_and_late_samples_go_into_them(at_hour):
    at_ms = every(20, hour=BASE_HOUR // 24 * 24, hours=24)
    values = (np.arange(len(at_ms)) % 97).astype(np.float32)
    put(1, at_ms, power_watts=values, reasons=4)
    at_hour(24)
    services.store_tick(now=now())
    services.store_fold(now=now())
    assert not SealedHour.objects.filter(hour__lt=(BASE_HOUR // 24 + 1) * 24).exists()
    assert SealedDay.objects.filter(metric=GPU.columns.index("power_watts")).count() == 1
    assert not SealedDay.objects.filter(metric=GPU.columns.index("fan_percent")).exists()
    result, one = chart(1, 2, 180)
    assert result.level == "raw"
    assert_same(one, *expected(at_ms, values, result))

    late = [(BASE_HOUR + 1) * HOUR_MS + 31_000]
    put(1, late, power_watts=1000.0)
    mark_late(1, BASE_HOUR + 1)
    services.store_tick(now=now())
    with_late = np.append(at_ms, late), np.append(values, np.float32(1000))
    for _ in range(2):  # with the hour beside its day, then folded into it
        result, one = chart(1, 2, 180)
        assert_same(one, *expected(*with_late, result))
        services.store_fold(now=now())
    assert not SealedHour.objects.filter(hour=BASE_HOUR + 1).exists()


def test_partitions_of_sealed_days_are_emptied_but_not_with_late_samples_waiting(at_hour):
    at_ms = every(600, hour=BASE_HOUR // 24 * 24, hours=24)
    put(1, at_ms, power_watts=1.0)
    at_hour(24 - BASE_HOUR % 24 + 3)
    services.store_tick(now=now())
    mark_late(1, BASE_HOUR)
    services.store_fold(now=now())
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM gpu_sample")
        assert cursor.fetchone() == (len(at_ms),)
        services.store_tick(now=now())
        services.store_fold(now=now())
        cursor.execute("SELECT count(*) FROM gpu_sample")
        assert cursor.fetchone() == (0,)
    assert SealedDay.objects.exists()


def test_a_spike_of_two_seconds_survives_on_a_chart_of_thirty_days(at_hour):
    put(1, [BASE_HOUR * HOUR_MS + 1_802_000], power_watts=690.0)
    put(1, every(5), power_watts=70.0)
    at_hour(1.1)
    services.store_tick(now=now())
    result = series(
        kind="gpu", subject_ids=[1], metrics=["power_watts"], start=now() - timedelta(days=30), end=now(), points=300
    )
    assert result.points <= 300
    assert np.nanmax(result.series[0].maximum) == 690.0
    assert np.nanmax(result.series[0].average) < 72.0
    assert np.isnan(result.series[0].average).sum() >= result.points - 2


def test_one_missing_sample_is_one_gap_of_one_interval(at_hour):
    at_ms = np.delete(every(5)[:60], 30)
    put(1, at_ms, power_watts=100.0)
    at_hour(0.1)
    result, one = chart(0, 60 * 5 / 3600, 60)
    assert result.step_seconds == 5
    assert np.flatnonzero(np.isnan(one.average)).tolist() == [30]


def test_a_metric_missing_in_one_sample_is_a_gap_in_that_metric_alone(at_hour):
    values = np.full(60, 100.0)
    values[30] = np.nan
    put(1, every(5)[:60], power_watts=values, utilization_percent=7)
    at_hour(0.1)
    assert np.flatnonzero(np.isnan(chart(0, 1 / 12, 60)[1].average)).tolist() == [30]
    assert not np.isnan(chart(0, 1 / 12, 60, metric="utilization_percent")[1].average).any()


def test_jitter_and_short_steps_make_no_gaps(at_hour):
    jitter = np.random.default_rng(2).integers(-450, 450, 60)
    put(1, every(5)[:60] + 2500 + jitter, power_watts=100.0)
    at_hour(0.1)
    for points in (300, 60):
        _, one = chart(10 / 3600, 290 / 3600, points)
        assert not np.isnan(one.average).any()


def test_a_chart_ends_at_the_last_sample(at_hour):
    put(1, every(5)[:360], power_watts=100.0)
    at_hour(1)
    _, one = chart(0, 1, 720)
    assert not np.isnan(one.average[:359]).any()
    assert np.isnan(one.average[361:]).all()


def drifting(count=60):
    """Return the times of samples a minute apart, each a little later, so that one minute has none."""
    return BASE_HOUR * HOUR_MS + 59_500 + np.arange(count) * 60_020


@pytest.mark.parametrize("closed", [False, True])
def test_a_sample_a_minute_that_comes_a_little_late_is_no_gap_in_minutes(at_hour, closed):
    put(1, drifting(), power_watts=np.arange(60, dtype=np.float32))
    at_hour(1.1)
    if closed:
        services.store_tick(now=now())
    result, one = chart(0, 1, 60)
    assert result.level == "1m"
    empty = np.setdiff1d(np.arange(60), (drifting() - BASE_HOUR * HOUR_MS) // 60_000)
    assert len(empty) == 1
    assert not np.isnan(one.average).any()
    assert one.average[empty] == one.average[empty - 1]


@pytest.mark.parametrize(("seconds", "missing"), [(60, 2), (30, 2), (30, 3), (20, 4), (10, 7), (5, 12)])
def test_missing_samples_are_gaps_in_minutes_whatever_the_interval(at_hour, seconds, missing):
    first = 1200 // seconds
    put(1, np.delete(every(seconds), np.arange(first, first + missing)), power_watts=100.0)
    at_hour(1.1)
    assert np.isnan(chart(0, 1, 60)[1].average).any()


def test_a_range_older_than_full_resolution_is_answered_from_minutes(at_hour):
    put(1, every(60), power_watts=100.0)
    at_hour(72)
    services.store_tick(now=now())
    result, one = chart(0, 1, 2000)
    assert result.level == "1m"
    assert np.nanmean(one.average) == 100.0


def test_the_fleet_is_averaged_over_the_cards_that_reported(at_hour):
    put(1, every(60), utilization_percent=80)
    put(2, every(60)[:30], utilization_percent=40)
    at_hour(1.1)
    _, (line,) = fleet_series(
        gpu_ids=[1, 2, 3], metrics=["utilization_percent"], start=moment(0), end=moment(1.1), points=66
    )
    assert line.average[0] == 60.0
    assert line.average[40] == 80.0
    assert line.reporting[[0, 40]].tolist() == [2, 1]
    assert line.maximum[0] == 80.0
    assert np.isnan(line.average[-1])
    assert line.reporting[-1] == 0


def test_host_and_gpu_series_do_not_mix(at_hour):
    put(1, every(60), power_watts=100.0)
    put(1, every(60), kind=HOST, cpu_percent=9.0)
    at_hour(1.1)
    services.store_tick(now=now())
    assert np.nanmax(chart(0, 1, 60, metric="cpu_percent", kind="server")[1].average) == 9.0


@pytest.mark.parametrize(
    ("first", "last", "points", "queries"), [(0, 1, 3600, 4), (0, 3, 60, 2), (0, 3, 30, 2), (0, 3, 3, 3)]
)
def test_the_number_of_queries_does_not_grow_with_range_or_subjects(wave, at_hour, first, last, points, queries):
    services.store_tick(now=now())
    for subjects in ([1], list(range(1, 100))):
        with CaptureQueriesContext(connection) as captured:
            series(
                kind="gpu",
                subject_ids=subjects,
                metrics=["power_watts", "utilization_percent"],
                start=moment(first),
                end=moment(last),
                points=points,
            )
        assert len(captured) == queries


def test_a_closed_chart_reads_no_samples(wave, at_hour):
    at_hour(3.1)
    services.store_tick(now=now())
    for points in (60, 30, 3):
        with CaptureQueriesContext(connection) as captured:
            chart(0, 3, points)
        assert "gpu_sample" not in str(captured.captured_queries)


def test_unknown_metrics_empty_ranges_and_endless_answers_are_refused(at_hour):
    at_hour(1)
    with pytest.raises(InvalidInput, match="no metric"):
        chart(0, 1, 10, metric="power_watts; DROP TABLE gpu_sample")
    with pytest.raises(InvalidInput, match="range"):
        chart(1, 1, 10)
    with pytest.raises(InvalidInput, match="too many points"):
        series(
            kind="gpu",
            subject_ids=range(5000),
            metrics=["power_watts"],
            start=moment(0),
            end=moment(1),
            points=2000,
        )


def test_retention_removes_each_level_at_its_own_age(at_hour, settings):
    put(1, every(60), power_watts=100.0)
    at_hour(1.1)
    services.store_tick(now=now())

    def left():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT count(*) FROM sealed_hour), (SELECT count(*) FROM gpu_rollup_60),"
                " (SELECT count(*) FROM gpu_rollup_300), (SELECT count(*) FROM gpu_rollup_3600)"
            )
            return cursor.fetchone()

    assert left() == (1, 1, 1, 1)
    for days, kept in ((1, (1, 1, 1, 1)), (3, (0, 1, 1, 1)), (92, (0, 0, 0, 1)), (733, (0, 0, 0, 0))):
        at_hour(days * 24)
        for kind in (GPU, HOST):
            services._forget_rows(kind, int(now().timestamp() * 1000))
        assert left() == kept
