"""Requests of our own probes: marked for gateways of the endpoint that they are about, stored apart, and in no load."""

import pytest

from endpoints.models import EndpointTraffic
from endpoints.services.gateways import gateway_create
from endpoints.services.routing import route_for_others
from endpoints.services.traffic import traffic_store
from fleet.agent import orders
from monitoring.probing.services import probe_create
from monitoring.probing.targets import target_of
from panel.core.clock import now
from panel.core.errors import InvalidInput
from panel.core.marks import probe_mark
from tests.endpoints.world import deployed
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db
NONE = orders.Histogram(0, 0.0, {})


def probe(endpoint=None, **target):
    about = {"subject_kind": "endpoint", "subject_id": endpoint.pk} if endpoint is not None else {}
    return probe_create(actor=OPERATOR, name="one", target={"kind": "http", "host": "example.org", **target}, **about)


def test_a_probe_of_an_endpoint_shows_the_mark_that_its_gateways_know(site):
    endpoint, other = deployed("chat"), deployed("image")
    mark = target_of(probe(endpoint)).mark
    assert mark == route_for_others(endpoint_id=endpoint.pk).probe_mark != ""
    assert mark != route_for_others(endpoint_id=other.pk).probe_mark


def test_a_probe_of_somebody_else_s_server_shows_no_mark_and_none_can_be_written_into_a_target(site):
    assert target_of(probe()).mark == ""
    with pytest.raises(InvalidInput, match="mark"):
        probe(mark="m" * 32)


def test_a_mark_is_not_guessed_from_another_s(settings):
    assert len({probe_mark("endpoint", 1), probe_mark("endpoint", 2), probe_mark("server", 1)}) == 3
    before = probe_mark("endpoint", 1)
    settings.SECRET_KEY = "another"
    assert probe_mark("endpoint", 1) != before


def test_probes_are_stored_apart_and_their_tokens_are_no_caller_s(site):
    endpoint = deployed("chat")
    gateway = gateway_create(server_id=site.server.pk, actor=OPERATOR)
    told = orders.EndpointTraffic(
        "chat", 4, {"2xx": 4}, NONE, NONE, NONE, requests_by_key={"1": 5}, tokens_by_key={"1": 90},
        estimated_tokens_by_key={"2": 10}, probes=3, probe_tokens=25,
    )  # fmt: skip
    report = orders.TrafficReport("run", 1, int(now().timestamp() * 1000), "serving", 1, [told])
    traffic_store(gateway=gateway, report=report)
    row = EndpointTraffic.objects.get(endpoint=endpoint)
    assert (row.requests, row.probes, row.tokens) == (4, 3, 75)
