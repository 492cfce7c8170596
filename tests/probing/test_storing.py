"""Results of probes: stored once, read back as exact percentiles, summed up by the hour, bounded, only of their own place."""

import math
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.agent.probes.result import ProbeResult
from fleet.services.agents import assignments_for
from monitoring.histograms import LogHistogram
from monitoring.percentiles import percentiles
from monitoring.probing.models import Probe, ProbeHour
from monitoring.probing.reading import latency, latency_series, results
from monitoring.probing.services import hours_sum_up, probe_create, probe_delete, probe_update
from monitoring.probing.storing import results_store
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput
from tests.endpoints.world import Site
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db

TARGET = {"kind": "http", "host": "127.0.0.1", "port": 9, "path": "/health"}


@pytest.fixture
def probe():
    return probe_create(actor=OPERATOR, name="panel", target=TARGET)


def found(probe, at, *, e2e=100.0, outcome="ok", **changes):
    """A result that began then."""
    facts = {
        "target": probe.pk, "kind": "http", "vantage": "panel", "connection": "cold", "scheduled_ms": 0,
        "started_ms": round(at.timestamp() * 1000), "outcome": outcome, "phase_reached": "done",
    }  # fmt: skip
    durations = {"e2e_ms": e2e, "ttfb_ms": e2e / 2, "total_ms": e2e} if outcome == "ok" else {}
    return ProbeResult(**{**facts, **durations, **changes})


def store(probe, rows, server_id=0):
    return results_store(server_id=server_id, results=rows, known={probe.pk}, at=now())


def test_a_result_told_twice_is_stored_once(probe):
    rows = [found(probe, now() - timedelta(seconds=number)) for number in range(5)]
    assert store(probe, rows) == 5
    assert store(probe, rows) == 0
    assert store(probe, [*rows, found(probe, now(), e2e=7.0)]) == 1
    [panel] = latency(probe_id=probe.pk, metric="e2e", start=now() - timedelta(hours=1), end=now())
    assert panel.percentiles[0].n == 6


def test_results_of_others_probes_and_of_impossible_times_are_left(probe):
    stranger = probe_create(actor=OPERATOR, name="other", target=TARGET)
    assert store(probe, [found(stranger, now())]) == 0
    assert store(probe, [found(probe, now() - timedelta(days=3)), found(probe, now() + timedelta(hours=1))]) == 0
    assert store(probe, [found(probe, now(), started_ms=2**62)]) == 0


def test_a_failure_lies_over_every_threshold_and_silence_of_the_place_counts_as_nothing(probe):
    at = now() - timedelta(minutes=1)
    rows = [found(probe, at - timedelta(seconds=number)) for number in range(97)]
    rows += [found(probe, at - timedelta(seconds=200 + number), outcome="timeout") for number in range(3)]
    rows += [found(probe, at - timedelta(seconds=300), outcome="vantage_down")]
    rows += [found(probe, at - timedelta(seconds=310), outcome="skipped", reason="address_refused")]
    store(probe, rows)
    [panel] = latency(
        probe_id=probe.pk, metric="e2e", start=at - timedelta(hours=1), end=now(), threshold_ms=1_000_000_000
    )
    assert (panel.failures, panel.over) == (3, 0.03)
    middle, p95, p99 = panel.percentiles
    assert (middle.value_ms, p95.value_ms) == (100.0, 100.0)
    assert math.isinf(p99.value_ms)
    assert not p99.is_enough, "a hundred are too few for it"


def test_places_and_connections_are_never_pooled(probe):
    at = now() - timedelta(minutes=1)
    store(probe, [found(probe, at, e2e=10.0), found(probe, at, e2e=2.0, connection="warm")])
    store(probe, [found(probe, at, e2e=500.0)], server_id=7)
    seen = latency(probe_id=probe.pk, metric="e2e", start=at - timedelta(hours=1), end=now())
    assert [(each.server_id, each.connection, each.percentiles[0].value_ms) for each in seen] == [
        (0, "cold", 10.0),
        (0, "warm", 2.0),
        (7, "cold", 500.0),
    ]


@given(st.lists(st.floats(0.0625, 100_000, width=32), min_size=1, max_size=60), st.integers(1, 4))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_percentiles_over_chunks_are_those_of_all_values(probe, durations, messages):
    Probe.objects.filter(pk=probe.pk).update(name=f"{probe.name}x")
    fresh = probe_create(actor=OPERATOR, name=f"p{Probe.objects.count()}", target=TARGET)
    at = now() - timedelta(minutes=40)
    rows = [found(fresh, at + timedelta(seconds=37 * number), e2e=value) for number, value in enumerate(durations)]
    for part in range(messages):
        store(fresh, rows[part::messages])
    [panel] = latency(probe_id=fresh.pk, metric="e2e", start=at - timedelta(hours=1), end=at + timedelta(hours=2))
    assert panel.percentiles == percentiles(durations, (0.5, 0.95, 0.99))


def test_a_series_has_whole_steps_and_says_of_how_many(probe):
    at = now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    store(probe, [found(probe, at + timedelta(minutes=5 * number), e2e=float(number + 1)) for number in range(12)])
    step, lines = latency_series(probe_id=probe.pk, metric="e2e", start=at, end=at + timedelta(hours=1), points=4)
    assert step == 900
    [steps] = lines.values()
    assert [(when, one[0].n) for when, one in steps] == [(at + timedelta(minutes=15 * k), 3) for k in range(4)]


def test_an_hour_is_summed_up_and_again_when_something_came_late(probe):
    hour = now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    store(probe, [found(probe, hour + timedelta(minutes=number), e2e=100.0) for number in range(10)])
    hours_sum_up(at=now())
    hours_sum_up(at=now())
    row = ProbeHour.objects.get(probe=probe, metric=0)
    assert (row.hour_at, LogHistogram.from_json(row.histogram).count) == (hour, 10)
    store(probe, [found(probe, hour + timedelta(minutes=50), outcome="connect")])
    hours_sum_up(at=now())
    histogram = LogHistogram.from_json(ProbeHour.objects.get(probe=probe, metric=0).histogram)
    assert (histogram.count, histogram.over) == (11, 1)


def test_results_come_back_with_their_phases_newest_first(probe):
    at = now() - timedelta(minutes=5)
    store(
        probe, [found(probe, at, dns_ms=1.5), found(probe, at + timedelta(seconds=30), outcome="tls", reason="expired")]
    )
    newest, oldest = results(probe_id=probe.pk, start=at - timedelta(hours=1), end=now())
    assert (newest["outcome"], newest["reason"]) == ("tls", "expired")
    assert (oldest["dns_ms"], oldest.get("tls_ms")) == (1.5, None)


def test_agents_are_told_what_they_probe_and_speak_of_nothing_else(probe, client):
    site = Site()
    mine = probe_create(
        actor=OPERATOR, name="from there", target=TARGET, bearer="secret", vantages=[f"server:{site.server.pk}"]
    )
    [told] = assignments_for(identity=site.identity).probes
    assert (told.id, told.bearer, told.path) == (mine.pk, "secret", "/health")
    body = {"results": [msgspec.to_builtins(found(mine, now())), msgspec.to_builtins(found(probe, now()))]}
    headers = {"Authorization": f"Bearer {site.token}"}
    sent = client.post("/api/agent/v1/probes/", body, content_type="application/json", headers=headers)
    assert sent.status_code == 204
    day = {"start": now() - timedelta(days=1), "end": now() + timedelta(minutes=1)}
    assert [each["server"] for each in results(probe_id=mine.pk, **day)] == [site.server.pk]
    assert results(probe_id=probe.pk, **day) == []
    probe_update(probe_id=mine.pk, actor=OPERATOR, is_enabled=False)
    assert assignments_for(identity=site.identity).probes == []
    probe_delete(probe_id=mine.pk, actor=OPERATOR)
    assert not Probe.objects.filter(pk=mine.pk).exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": {"kind": "http", "host": "no host!"}},
        {"target": {"kind": "ftp", "host": "a"}},
        {"target": {**TARGET, "bearer": "x"}},
        {"target": {**TARGET, "headers": {"a\n": "b"}}},
        {"vantages": ["server:77"]},
        {"vantages": []},
        {"metric": "speed"},
        {"name": " "},
        {"interval_seconds": 0.1},
    ],
)
def test_what_cannot_be_probed_is_refused_in_words(wrong):
    with pytest.raises(InvalidInput):
        probe_create(actor=OPERATOR, **({"name": "p", "target": TARGET} | wrong))


def test_a_name_is_taken_once(probe):
    with pytest.raises(Conflict):
        probe_create(actor=OPERATOR, name=probe.name, target=TARGET)


def test_a_range_beyond_the_partitions_is_empty(probe):
    old = datetime(2020, 1, 1, tzinfo=UTC)
    assert latency(probe_id=probe.pk, metric="e2e", start=old, end=old + timedelta(days=1)) == []
