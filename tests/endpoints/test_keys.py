"""Keys of callers: told to gateways as digests, refused when revoked or expired, held while over their tokens of a minute."""

from datetime import timedelta

import pytest

from endpoints.models import EndpointTraffic
from endpoints.services.gateways import gateway_create, gateway_report
from endpoints.services.keys import key_create, key_revoke, keys_settle
from endpoints.services.routing import routes_since
from endpoints.services.traffic import traffic_forget
from fleet.agent import orders
from panel.core import tokens
from panel.core.clock import now
from tests.endpoints.world import deployed, settle
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway(site):
    made = gateway_create(server_id=site.server.pk, actor=OPERATOR)
    deployed()
    settle(sites=[site])
    return made


def histogram(*buckets):
    return orders.Histogram(len(buckets), 10.0 * len(buckets), dict.fromkeys(buckets, 1))


def report(site, at, *, seq=1, **traffic):
    gateway_report(
        identity=site.identity,
        report=orders.TrafficReport(
            run_id="00000000-0000-4000-8000-000000000001",
            seq=seq,
            from_ms=round(at.timestamp() * 1000),
            state="serving",
            applied_version=1,
            endpoints=[
                orders.EndpointTraffic(
                    endpoint="chat",
                    requests=2,
                    statuses={"2xx": 2},
                    queue=histogram(3),
                    first_byte=histogram(100, 120),
                    total=histogram(200, 210),
                    **traffic,
                )
            ],
        ),
    )


def rules(gateway):
    return {rule.id: rule for rule in routes_since(have=0, gateway=gateway).keys}


def test_gateways_are_told_digests_and_only_of_keys_that_open_something(gateway, time_machine):
    time_machine.move_to(now(), tick=False)
    key, issued = key_create(name="app", actor=OPERATOR, endpoints=["chat"], requests_per_minute=60)
    brief, _issued = key_create(name="brief", actor=OPERATOR, expires_at=now() + timedelta(hours=1))
    told = rules(gateway)[key.pk]
    assert (told.digest, told.endpoints, told.requests_per_minute) == (tokens.hash_token(issued.token), ["chat"], 60)
    version = routes_since(have=0, gateway=gateway).version
    assert routes_since(have=version, gateway=gateway).keys is None, "nothing changed"
    key_revoke(key_id=key.pk, actor=OPERATOR)
    changed = routes_since(have=version, gateway=gateway)
    assert [rule.id for rule in changed.keys] == [brief.pk]
    time_machine.shift(timedelta(hours=2))
    assert rules(gateway) == {}


@pytest.mark.parametrize("told", ["tokens_by_key", "estimated_tokens_by_key"])
def test_a_key_over_its_tokens_is_held_until_its_minute_ends(gateway, site, time_machine, told):
    time_machine.move_to(now().replace(second=5, microsecond=0), tick=False)
    key, _issued = key_create(name="app", actor=OPERATOR, tokens_per_minute=1000)
    report(site, now(), **{told: {str(key.pk): 600}, "requests_by_key": {str(key.pk): 1}})
    keys_settle(at=now())
    assert not rules(gateway)[key.pk].is_held
    report(site, now(), seq=2, **{told: {str(key.pk): 500}})
    keys_settle(at=now())
    assert rules(gateway)[key.pk].is_held
    key.refresh_from_db()
    assert key.last_used_at == now()
    time_machine.shift(timedelta(seconds=56))
    keys_settle(at=now())
    assert not rules(gateway)[key.pk].is_held


def test_a_span_told_twice_is_stored_once_and_forgotten_after_a_week(gateway, site, time_machine):
    time_machine.move_to(now(), tick=False)
    report(site, now())
    report(site, now())
    report(site, now(), seq=2)
    row = EndpointTraffic.objects.get()
    assert (row.requests, row.statuses, row.first_byte["buckets"]) == (2, {"2xx": 2}, {"100": 1, "120": 1})
    time_machine.shift(timedelta(days=7, seconds=1))
    traffic_forget(at=now())
    assert not EndpointTraffic.objects.exists()
