"""What engines told, through a report into the store: rates, restarts, ownership, histograms once, whatever comes."""

from datetime import timedelta

import msgspec
import pytest
from django.db import connection

from endpoints.models import Replica
from fleet.agent import wire, wire_engines
from fleet.agent.packing import columns, packed
from fleet.models import Server
from monitoring.engines import keeping
from monitoring.engines.histograms import merged
from monitoring.engines.reading import histograms
from monitoring.ingest import owners
from monitoring.selectors import latest_for_replicas, series
from panel.core.clock import now
from tests.ingest.panel import join, now_ms


@pytest.fixture
def owned(monkeypatch):
    """Replicas of each server, by id, with their endpoint."""
    table = {}
    monkeypatch.setattr(owners, "_lookup", [lambda server_id: table.get(server_id, {})])
    yield table
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE engine_histogram")


@pytest.fixture
def sender(owned):
    found = join()
    owned[found.server.pk] = {7: 70}
    return found


def looks(*readings, ages=None, start_ms=None):
    """Samples 10 s apart, the last one now."""
    at = start_ms or now_ms()
    ages = ages or [10 * n for n in reversed(range(len(readings)))]
    return [
        wire_engines.EngineSample(at - age * 1000, 1_000_000_000 - age * 1000, **fields)
        for age, fields in zip(ages, readings, strict=True)
    ]


def report(sender, rows, *, replica=7, has_previous=False, histograms=(), **fields):
    engines = [wire_engines.Engine(replica, len(rows), has_previous, list(histograms))]
    return sender.report(engines=engines, engine_columns=columns(rows), **fields)


def grown(counts=(1, 2, 0), *, bounds=(0.1, 1.0), age=0, seconds=1.5, name="time_to_first_token"):
    at = now_ms() - age * 1000
    return wire_engines.EngineHistogram(name, at, 1_000_000_000 - age * 1000, list(bounds), list(counts), seconds)


def stored():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT subject_id, running, generation_tokens_per_second, requests_per_second, own_requests_per_second"
            " FROM engine_sample ORDER BY subject_id, at"
        )
        return cursor.fetchall()


def test_counters_become_rates_and_gauges_stay(panel, sender):
    rows = looks(
        {"running": 1.0, "generation_tokens": 1000.0, "requests": 5.0, "own_requests": 2.0},
        {"running": 3.0, "generation_tokens": 1500.0, "requests": 15.0, "own_requests": 4.0},
    )
    assert panel.post(sender, report(sender, rows)).status_code == 200
    assert stored() == [(7, 1, None, None, None), (7, 3, 50, 1, pytest.approx(0.2))]
    latest = latest_for_replicas(replica_ids=[7])[7]
    assert latest.values["generation_tokens_per_second"] == 50
    assert latest.values["waiting"] is None


def test_the_look_before_the_batch_serves_rates_and_is_not_stored_again(panel, sender):
    rows = looks({"generation_tokens": 100.0}, {"generation_tokens": 300.0})
    panel.post(sender, report(sender, rows, has_previous=True))
    assert [row[2] for row in stored()] == [20]


def test_an_engine_that_was_started_again_has_no_rate_for_that_step(panel, sender):
    rows = looks({"generation_tokens": 9000.0}, {"generation_tokens": 10.0}, {"generation_tokens": 60.0})
    panel.post(sender, report(sender, rows))
    assert [row[2] for row in stored()] == [None, None, 5]


def test_replicas_of_other_servers_are_left_out_and_the_rest_of_the_report_is_kept(panel, sender, owned):
    rows = looks({"running": 1.0})
    host = [wire.HostSample(at_ms=now_ms(), monotonic_ms=1_000_000_000, load_1m=1.0)]
    response = panel.post(sender, report(sender, rows, replica=8, histograms=[grown()], host_samples=host))
    assert response.status_code == 200
    assert stored() == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM engine_histogram")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT count(*) FROM host_sample")
        assert cursor.fetchone() == (1,)


def test_a_report_that_is_sent_twice_is_stored_once_with_its_histograms(panel, sender):
    once = report(sender, looks({"running": 2.0}), histograms=[grown(), grown((0, 1, 1), age=60)])
    assert [panel.post(sender, once).answer.get("duplicate", False) for _ in range(2)] == [False, True]
    assert len(stored()) == 1
    at = now()
    found = merged(
        histograms(
            replica_ids=[7], names=["time_to_first_token"], start=at - timedelta(hours=1), end=at,
            step_seconds=86_400, now=at,
        ).values()
    )  # fmt: skip
    assert (found.n, found.counts, found.sum_seconds) == (5, (1, 3, 1), 3.0)


@pytest.mark.parametrize(
    "broken",
    [
        grown(bounds=(1.0, 0.1)),
        grown(counts=(1, 2)),
        grown(bounds=(0.1, float("inf"))),
        grown(bounds=(float("nan"), 1.0)),
    ],
)
def test_a_histogram_that_is_none_is_left_out(panel, sender, broken):
    assert panel.post(sender, report(sender, looks({"running": 1.0}), histograms=[broken])).status_code == 200
    at = now()
    asked = {"replica_ids": [7], "names": ["time_to_first_token"], "step_seconds": 60, "now": at}
    assert histograms(start=at - timedelta(hours=1), end=at, **asked) == {}
    assert len(stored()) == 1


@pytest.mark.parametrize(
    "engines",
    [
        [wire_engines.Engine(7, 5)],
        [wire_engines.Engine(7, 1), wire_engines.Engine(7, 0)],
        [wire_engines.Engine(n + 1) for n in range(wire.LIMITS["engines"] + 1)],
    ],
)
def test_rows_that_do_not_fit_are_refused(panel, sender, engines):
    sent = sender.report(engines=engines, engine_columns=columns(looks({"running": 1.0})))
    assert panel.post(sender, sent).status_code == 400


def test_names_and_numbers_that_nobody_knows_are_refused_in_words(panel, sender):
    plain = msgspec.to_builtins(packed(report(sender, looks({"running": 1.0}), histograms=[grown()])))
    plain["engines"][0]["histograms"][0][0] = "time_to_first_joke"
    response = panel.post(sender, None, content=msgspec.msgpack.encode(plain))
    assert (response.status_code, response.answer["code"]) == (400, "invalid_report")


def test_closed_hours_are_summed_up_once_and_read_for_long_ranges(panel, sender, owned):
    age = 3 * 3600
    sent = report(sender, looks({"running": 1.0}), histograms=[grown(age=age), grown((0, 0, 4), age=age + 60)])
    panel.post(sender, sent)
    at = now()
    written = [keeping.hours_sum_up(at=at) for _ in range(2)]
    assert written[0] == written[1] > 0
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE engine_histogram")
    found = histograms(
        replica_ids=[7], names=["time_to_first_token"],
        start=at - timedelta(days=1), end=at, step_seconds=86_400, now=at,
    )  # fmt: skip
    assert sum(one.n for one in found.values()) == 7


def test_series_of_replicas_come_from_the_store_like_those_of_cards(panel, sender):
    panel.post(sender, report(sender, looks({"running": 1.0}, {"running": 3.0})))
    at = now()
    found = series(
        kind="replica", subject_ids=[7], metrics=["running"], start=at - timedelta(minutes=1), end=at, points=10,
    )  # fmt: skip
    (line,) = found.series
    assert sorted({value for value in line.average.tolist() if value == value}) == [1, 3]


def test_the_registered_lookup_gives_the_replicas_of_a_server_and_no_others(db):
    assert Replica.objects.count() == 0
    assert Server.objects.count() == 0
    assert owners.replicas_of(server_id=1) == {}
