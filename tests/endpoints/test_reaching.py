"""Gateways reach every replica: also those that were placed before there was a gateway, or before this one."""

import pytest

from endpoints.models import Rollout
from endpoints.services.endpoints import endpoint_scale
from endpoints.services.gateways import gateway_create
from endpoints.services.reaching import endpoints_reach
from tests.endpoints.world import Site, deployed, open_replicas, serving, settle, spec
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


@pytest.fixture
def door():
    """A machine without cards of its own for replicas, where callers arrive."""
    return Site("door", cards=0)


def hosts(site):
    """Where the engines of a site listen."""
    return [order.host for order in site.orders()]


def test_without_a_gateway_elsewhere_engines_listen_on_loopback_alone(site):
    deployed()
    settle(sites=[site])
    assert hosts(site) == ["127.0.0.1"]
    gateway_create(server_id=site.server.pk, actor=OPERATOR)
    assert hosts(site) == ["127.0.0.1"]
    assert endpoints_reach() == []


def test_one_that_was_deployed_before_its_gateway_is_started_anew_where_the_gateway_reaches_it(site, door):
    endpoint = deployed()
    settle(sites=[site])
    gateway_create(server_id=door.server.pk, actor=OPERATOR)
    assert hosts(site) == ["127.0.0.1"], "what runs is not told another address"
    assert endpoints_reach() == [endpoint.pk]
    assert endpoints_reach() == [], "once"
    settle(sites=[site, door])
    assert hosts(site) == ["0.0.0.0"]
    assert len(serving(endpoint)) == 1
    assert endpoints_reach() == []


def test_an_only_replica_that_serves_through_an_earlier_gateway_is_moved_only_when_there_is_room(site, door):
    gateway_create(server_id=site.server.pk, actor=OPERATOR)
    endpoint = deployed()
    other = deployed("other")  # has the second card
    settle(sites=[site])
    gateway_create(server_id=door.server.pk, actor=OPERATOR)
    assert endpoints_reach() == []
    assert not Rollout.objects.filter(ended_at=None).exists()
    endpoint_scale(endpoint_id=other.pk, desired_replicas=0, actor=OPERATOR)
    settle(sites=[site, door])
    assert endpoints_reach() == [endpoint.pk]
    settle(sites=[site, door])
    assert hosts(site) == ["0.0.0.0"]


def test_of_several_replicas_others_serve_while_one_is_started_anew(site, door):
    gateway_create(server_id=site.server.pk, actor=OPERATOR)
    endpoint = deployed(desired_replicas=2)
    settle(sites=[site])
    gateway_create(server_id=door.server.pk, actor=OPERATOR)
    assert endpoints_reach() == [endpoint.pk]
    settle(sites=[site, door])
    assert hosts(site) == ["0.0.0.0", "0.0.0.0"]
    assert {each.revision.number for each in open_replicas(endpoint)} == {2}


def test_what_is_being_rolled_out_is_left_to_its_rollout(site, door):
    deployed(engine=spec(), gpus=1)
    gateway_create(server_id=door.server.pk, actor=OPERATOR)
    assert endpoints_reach() == []
