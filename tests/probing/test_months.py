"""Percentiles beyond what single results are kept for: merged hours, right to 1.1 %, places apart."""

from datetime import timedelta

import numpy as np
import pytest

from monitoring.histograms import RELATIVE_ERROR, LogHistogram
from monitoring.percentiles import percentiles, rank_interval
from monitoring.probing import months
from monitoring.probing.models import Probe, ProbeHour
from monitoring.probing.services import probe_create
from panel.core.clock import now
from tests.accounts.people import person, token_client
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


@pytest.fixture
def probe(db) -> Probe:
    return probe_create(actor=OPERATOR, name="one", target={"kind": "http", "host": "example.org"}, threshold_ms=900.0)


def hour(probe, at, values, *, server_id=0, connection=0):
    ProbeHour.objects.create(
        probe=probe, server_id=server_id, connection=connection, metric=0, hour_at=at,
        histogram=LogHistogram.of(values).as_json(),
    )  # fmt: skip


def history(probe, days=200, each=40):
    """Hours of many days ago; returns every duration."""
    rng, everything = np.random.default_rng(4), []
    begin = (now() - timedelta(days=days)).replace(minute=0, second=0, microsecond=0)
    for n in range(60):
        values = rng.lognormal(5, 0.6, each)
        values[0] = np.inf if n % 10 == 0 else values[0]
        hour(probe, begin + timedelta(hours=n), values)
        everything.append(values)
    return begin, np.concatenate(everything)


def asked(probe, begin):
    return {"probe_id": probe.pk, "metric": "e2e", "start": begin, "end": begin + timedelta(days=3)}


def test_merged_hours_tell_what_all_results_together_would(probe):
    begin, values = history(probe)
    (found,) = months.latency(**asked(probe, begin), threshold_ms=900.0)
    exact = percentiles(values)
    for ours, true in zip(found.percentiles, exact, strict=True):
        assert (ours.n, ours.is_enough) == (true.n, true.is_enough)
        assert ours.value_ms == pytest.approx(true.value_ms, rel=RELATIVE_ERROR * 1.001)
        assert ours.low_ms == pytest.approx(true.low_ms, rel=RELATIVE_ERROR * 1.001)
    assert found.failures == 6
    assert found.over == pytest.approx((values > 900).mean(), abs=0.01)


def test_places_and_connections_stay_apart_and_steps_are_whole_hours(probe):
    begin, _values = history(probe)
    hour(probe, begin, [5.0], server_id=3)
    hour(probe, begin, [7.0], connection=1)
    step, found = months.latency_series(**asked(probe, begin), points=10)
    assert sorted(found) == [(0, "cold"), (0, "warm"), (3, "cold")]
    assert step == 8 * 3600
    assert sum(one[0].n for _at, one in found[0, "cold"]) == 2400
    assert all(at.timestamp() % step == 0 for at, _one in found[0, "cold"])


def test_ranks_of_many_are_those_that_are_counted(probe):
    for q in (0.5, 0.95, 0.99):
        counted, quick = rank_interval(q, 20_000), months._ranks_of_many(q, 20_000)
        assert all(abs(a - b) <= 2 for a, b in zip(counted, quick, strict=True))


def test_the_api_answers_for_half_a_year_and_says_that_it_is_not_exact(probe):
    begin, _values = history(probe)
    client = token_client(person("vera", "viewer"))
    answer = client.get(f"/api/v1/probes/{probe.pk}/latency/", {"from": begin.isoformat()}).json()
    assert (answer["is_exact"], answer["vantages"][0]["percentiles"][2]["n"]) == (False, 2400)
    assert client.get(f"/api/v1/probes/{probe.pk}/latency/").json()["is_exact"] is True
    too_long = (now() - timedelta(days=800)).isoformat()
    assert client.get(f"/api/v1/probes/{probe.pk}/latency/", {"from": too_long}).status_code == 400
