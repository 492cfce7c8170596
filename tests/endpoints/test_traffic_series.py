"""Traffic over time: per second and bucket, zero where gateways told of nothing, missing where nobody told."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from rest_framework.test import APIClient

from endpoints.models import Endpoint, EndpointTraffic, Gateway
from endpoints.services.gateways import gateway_create
from endpoints.traffic_series import METRICS, Grid, request_rates, traffic_series
from panel.core.clock import now
from tests.accounts.people import person
from tests.endpoints.test_traffic import histogram, span
from tests.endpoints.world import Site, deployed, settle
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(db):
    site = Site("rack-1")
    endpoint = deployed("chat", gpus=1)
    settle(sites=[site])
    gateway = gateway_create(server_id=site.server.pk, actor=OPERATOR)
    Endpoint.objects.update(created_at=now() - timedelta(days=1))
    Gateway.objects.update(reported_at=now(), created_at=now() - timedelta(minutes=10))
    return endpoint, gateway


def read(endpoint, *metrics, minutes=15):
    """Return (mean, peak) of each metric over the last minutes, and the grid."""
    at = now()
    found = traffic_series(
        endpoint_id=endpoint.pk, metrics=metrics or METRICS,
        start=at - timedelta(minutes=minutes), end=at, points=460,
    )  # fmt: skip
    return found, {each.metric: (each.average, each.maximum) for each in found.series}


def known(column):
    return column[~np.isnan(column)]


def test_requests_are_told_by_class_per_second_of_their_bucket(world):
    endpoint, gateway = world
    span(gateway, endpoint, statuses={"2xx": 40, "4xx": 6, "5xx": 4, "left": 10}, limited=6)
    found, series = read(endpoint)
    assert found.step_seconds == 10
    rates = {name: known(series[f"requests_{name}_per_second"][0]).max() for name in ("2xx", "4xx", "5xx", "left")}
    assert rates == pytest.approx({"2xx": 4.0, "4xx": 0.6, "5xx": 0.4, "left": 1.0})
    assert known(series["limited_per_second"][0]).sum() * 10 == pytest.approx(6)


def test_no_row_is_no_request_while_gateways_tell_and_unknown_before_and_after(world):
    endpoint, _gateway = world
    Gateway.objects.update(reported_at=now() - timedelta(minutes=5))
    _found, series = read(endpoint)
    column = series["requests_2xx_per_second"][0]
    assert 29 <= len(known(column)) <= 32, "five of fifteen minutes: from the gateway's first to its last word"
    assert np.isnan(column[0])
    assert np.isnan(column[-1])
    assert set(known(column)) == {0.0}


def test_without_a_gateway_nothing_is_known(world):
    endpoint, _gateway = world
    Gateway.objects.all().delete()
    _found, series = read(endpoint)
    assert all(np.isnan(mean).all() for mean, _peak in series.values())


def test_percentiles_are_of_the_bucket_and_missing_below_enough_samples(world):
    endpoint, gateway = world
    span(gateway, endpoint, total=histogram(e6=300, e10=30), queue=histogram(e3=20))
    _found, series = read(endpoint)
    one = {name: known(series[name][0]) for name in ("total_p50_ms", "total_p90_ms", "total_p99_ms", "total_max_ms")}
    assert one["total_p50_ms"][0] == pytest.approx(2**6, rel=0.03)
    assert one["total_p90_ms"][0] == pytest.approx(2**6, rel=0.03)
    assert one["total_p99_ms"][0] == pytest.approx(2**10, rel=0.03)
    assert one["total_max_ms"][0] == pytest.approx(2**10, rel=0.03)
    assert len(known(series["queue_p50_ms"][0])) == 1
    assert len(known(series["queue_p90_ms"][0])) == 0, "20 samples are too few for P90"


def test_two_gateways_of_one_span_are_added_before_a_peak_is_taken(world):
    endpoint, gateway = world
    other = gateway_create(server_id=Site("rack-2").server.pk, actor=OPERATOR)
    at = now() - timedelta(seconds=60)
    for each, flying in ((gateway, 3), (other, 4)):
        row = span(each, endpoint, in_flight=flying)
        row.from_at = at
        row.save()
    _found, series = read(endpoint)
    mean, peak = series["in_flight"]
    assert (known(mean).max(), known(peak).max()) == (7, 7)


def test_tokens_of_callers_without_a_key_are_missing_and_not_zero(world):
    endpoint, gateway = world
    span(gateway, endpoint, ago=60, tokens=500)
    span(gateway, endpoint, ago=30, tokens=None)
    _found, series = read(endpoint)
    column = series["tokens_per_second"][0]
    assert np.nanmax(column) == 50
    requests = series["requests_2xx_per_second"][0]
    assert np.isnan(column[requests > 0]).sum() == 1


def test_a_grid_never_has_more_buckets_than_can_be_told_apart():
    end = now()
    for hours in (0.25, 1, 6, 24, 24 * 7, 24 * 30):
        grid = Grid.of(end - timedelta(hours=hours), end, 460)
        assert 1 <= grid.points <= 121
        assert grid.start + grid.step * grid.points >= end.timestamp()


def test_small_curves_of_many_endpoints_take_two_queries(world, django_assert_num_queries):
    endpoint, gateway = world
    other = deployed("idle", gpus=0)
    span(gateway, endpoint, statuses={"2xx": 20})
    at = now()
    made = {endpoint.pk: at - timedelta(hours=1), other.pk: at}
    with django_assert_num_queries(2):
        found = request_rates(endpoints=made, start=at - timedelta(minutes=15), end=at, points=46)
    assert max(each for each in found[endpoint.pk] if each is not None) == pytest.approx(20 / 30, abs=0.001)
    assert set(found[other.pk]) <= {None, 0.0}


def test_the_api_answers_series_and_refuses_a_metric_that_there_is_not(world):
    endpoint, gateway = world
    span(gateway, endpoint, statuses={"2xx": 40})
    client = APIClient()
    client.force_authenticate(person("viewer"))
    url = f"/api/v1/endpoints/{endpoint.name}/traffic/series/"
    body = client.get(url, {"metrics": "requests_2xx_per_second,total_p50_ms", "points": 90}).json()
    assert [each["metric"] for each in body["series"]] == ["requests_2xx_per_second", "total_p50_ms"]
    assert {each["endpoint"] for each in body["series"]} == {endpoint.pk}
    assert max(point[1] for point in body["series"][0]["points"] if point[1] is not None) > 0
    frame = client.get(url, {"metrics": "in_flight"}, headers={"accept": "application/vnd.fleetdeck.series"})
    assert frame.content[:4] == b"FDS1"
    refused = client.get(url, {"metrics": "requests,power_watts"})
    assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (400, "metrics")
    week = (now() - timedelta(days=7)).isoformat()
    assert client.get(url, {"metrics": "requests_2xx_per_second", "from": week}).status_code == 200
    refused = client.get(url, {"metrics": "total_p99_ms", "from": week})
    assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (400, "from")


def test_the_newest_bucket_counts_only_the_time_that_was_told(world):
    """Else the line would fall at its end with each report."""
    endpoint, gateway = world
    at = now()
    begin = at.timestamp() // 60 * 60
    Gateway.objects.update(reported_at=datetime.fromtimestamp(begin + 21, UTC))
    row = span(gateway, endpoint, statuses={"2xx": 100})
    EndpointTraffic.objects.filter(pk=row.pk).update(from_at=datetime.fromtimestamp(begin, UTC))
    found = traffic_series(
        endpoint_id=endpoint.pk, metrics=["requests_2xx_per_second"], start=at - timedelta(hours=1),
        end=datetime.fromtimestamp(begin + 21, UTC), points=60,
    )  # fmt: skip
    assert found.step_seconds == 60
    assert known(found.series[0].average)[-1] == pytest.approx(100 / 20)
