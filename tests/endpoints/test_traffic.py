"""What went through gateways, added up over gateways and time; and what the cards behind it cost an hour."""

from datetime import timedelta
from decimal import Decimal

import pytest
from rest_framework.test import APIClient

from endpoints.costs import endpoint_costs
from endpoints.forecast import cost_of_next, usual_start_seconds
from endpoints.live import endpoints_snapshot
from endpoints.models import EndpointTraffic, Gateway
from endpoints.services.gateways import gateway_create
from endpoints.traffic import WINDOWS, traffic_of
from fleet.models import BilledInterval, Lease, LeasePrice
from panel.core.clock import now
from tests.accounts.people import person
from tests.endpoints.world import Site, deployed, open_replicas, settle
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


def histogram(**buckets):
    """A histogram with so many samples at 2**exponent ms, by `e<exponent>`."""
    counts = {str(int(name[1:]) * 32): number for name, number in buckets.items()}
    total = sum(counts.values())
    return {"count": total, "sum_ms": sum(2 ** (int(k) / 32) * n for k, n in counts.items()), "buckets": counts}


def span(gateway, endpoint, *, ago=60, statuses=None, total=None, **changes):
    """One span of 10 s of a gateway."""
    statuses = statuses or {"200": 10}
    return EndpointTraffic.objects.create(
        gateway=gateway,
        endpoint=endpoint,
        from_at=now() - timedelta(seconds=ago),
        requests=sum(statuses.values()),
        statuses=statuses,
        total=total or histogram(e6=sum(statuses.values())),
        **changes,
    )


def leased(server, amount, currency="CNY"):
    """A lease of the server that costs so much an hour."""
    at = now() - timedelta(hours=2)
    lease = Lease.objects.create(
        name=f"lease-{server.pk}", server=server, state="active", status="running", origin="typed", billing="hourly",
        requested_at=at, started_at=at, state_changed_at=at,
    )  # fmt: skip
    LeasePrice.objects.create(
        lease=lease, component="compute", unit="hour", amount=Decimal(amount), currency=currency,
        effective_from=at, noted_at=at,
    )  # fmt: skip
    BilledInterval.objects.create(lease=lease, mode="full", started_at=at)
    return lease


@pytest.fixture
def world(db):
    first, second = Site("rack-1"), Site("rack-2")
    endpoint = deployed("chat", gpus=1, desired_replicas=2)
    settle(sites=[first, second])
    gateways = [gateway_create(server_id=site.server.pk, actor=OPERATOR) for site in (first, second)]
    Gateway.objects.update(reported_at=now())
    return endpoint, gateways, [first, second]


def read(endpoint, window="15m"):
    made = {endpoint.pk: now() - timedelta(days=2)}
    return traffic_of(endpoints=made, window=WINDOWS[window], at=now())[endpoint.pk]


def test_two_gateways_are_added_and_their_quantiles_are_of_all_requests(world):
    endpoint, (one, two), _sites = world
    span(one, endpoint, statuses={"200": 500}, total=histogram(e6=500))
    span(two, endpoint, statuses={"200": 40, "503": 10}, total=histogram(e10=50))
    found = read(endpoint)
    assert (found.requests, found.statuses) == (550, {"2xx": 540, "5xx": 10})
    assert found.requests_per_second == pytest.approx(550 / 900)
    assert found.latency["total"].n == 550
    assert found.latency["total"].quantiles[0.99] == pytest.approx(1024, rel=0.022)
    assert found.latency["total"].quantiles[0.5] == pytest.approx(64, rel=0.022)
    assert found.latency["queue"].n == 0


def test_too_few_requests_have_a_median_and_no_p95_or_p99(world):
    endpoint, (one, _two), _sites = world
    span(one, endpoint, statuses={"200": 58})
    total = read(endpoint).latency["total"]
    assert (total.n, total.quantiles[0.95], total.quantiles[0.99]) == (58, None, None)
    assert total.quantiles[0.5] is not None


def test_a_window_holds_what_lies_within_it(world):
    endpoint, (one, _two), _sites = world
    for ago in (60, 1_800, 7_200, 100_000):
        span(one, endpoint, ago=ago)
    assert [read(endpoint, each).requests for each in ("15m", "1h", "24h")] == [10, 20, 30]


def test_no_requests_are_zero_and_a_silent_gateway_is_not_known(world):
    endpoint, _gateways, _sites = world
    assert read(endpoint).requests == 0
    Gateway.objects.update(reported_at=now() - timedelta(minutes=5))
    found = read(endpoint)
    assert (found.requests, found.requests_per_second, found.limited) == (None, None, None)


def test_a_young_endpoint_is_counted_over_its_own_time(world):
    endpoint, (one, _two), _sites = world
    span(one, endpoint, ago=20, statuses={"200": 60})
    made = {endpoint.pk: now() - timedelta(seconds=60)}
    found = traffic_of(endpoints=made, window=WINDOWS["1h"], at=now())[endpoint.pk]
    assert found.requests_per_second == pytest.approx(1.0, rel=0.02)


def test_the_api_answers_a_window_and_names_those_there_are(world):
    endpoint, (one, _two), _sites = world
    span(one, endpoint, statuses={"200": 400})
    api = APIClient()
    api.force_authenticate(person("vic", "viewer"))
    body = api.get(f"/api/v1/endpoints/{endpoint.name}/traffic/?window=1h").json()
    assert (body["window"], body["requests"], body["statuses"]) == ("1h", 400, {"2xx": 400})
    assert [each["needs"] for each in body["total"]["quantiles"]] == [1, 59, 299]
    assert body["total"]["quantiles"][2]["ms"] == pytest.approx(64, rel=0.022)
    assert body["queue"]["quantiles"][0]["ms"] is None
    wrong = api.get(f"/api/v1/endpoints/{endpoint.name}/traffic/?window=2y")
    assert wrong.status_code == 400
    assert "15m, 1h, 24h" in str(wrong.json())


def test_an_hour_of_held_cards_is_their_share_of_each_lease_and_what_is_not_known_is_said(world):
    endpoint, _gateways, (first, second) = world
    cost = endpoint_costs(endpoint_ids=[endpoint.pk], at=now())[endpoint.pk]
    assert (cost.gpus, cost.known, cost.unknown) == (2, {}, 2)
    leased(first.server, "20")
    leased(second.server, "3", "USD")
    cost = endpoint_costs(endpoint_ids=[endpoint.pk], at=now())[endpoint.pk]
    assert (cost.gpus, cost.unknown) == (2, 0)
    assert {code: money.amount for code, money in cost.known.items()} == {"CNY": Decimal(10), "USD": Decimal("1.5")}


def test_the_next_replicas_are_priced_where_they_would_go_and_only_as_far_as_there_is_room(world):
    endpoint, _gateways, (first, second) = world
    leased(first.server, "20")
    leased(second.server, "8")
    revision = open_replicas(endpoint)[0].revision
    cost, room = cost_of_next(endpoint=endpoint, revision=revision, count=5, at=now())
    assert (room, cost.gpus, cost.known["CNY"].amount) == (2, 2, Decimal(14))


def test_the_usual_start_is_the_median_of_those_that_came_to_answer(world):
    endpoint, _gateways, _sites = world
    for replica, seconds in zip(open_replicas(endpoint), (30, 50), strict=True):
        replica.ready_at = replica.created_at + timedelta(seconds=seconds)
        replica.save()
    assert usual_start_seconds(engine="custom", model="") == 40
    assert usual_start_seconds(engine="vllm", model="Qwen/Qwen3-8B") is None


def test_a_snapshot_of_all_endpoints_takes_three_queries_however_many(world, django_assert_num_queries):
    endpoint, _gateways, _sites = world
    for number in range(4):
        deployed(f"more-{number}")
    with django_assert_num_queries(3):
        found = endpoints_snapshot(0)["endpoints"]
    assert len(found) == 5
    assert (found[str(endpoint.pk)]["ready"], found[str(endpoint.pk)]["rollout"]["state"]) == (2, "succeeded")
